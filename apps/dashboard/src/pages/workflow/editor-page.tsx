import { lazy, Suspense, useEffect } from 'react';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { setParams, useParam, usePosition } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { useRead } from '../../data/use-read.js';
import { Button, Empty, IconButton, Loading, ProblemBox, State } from '../../ui/ui.js';
import { ConflictDialog, ConnectDialog, LeaveDialog } from './dialogs.js';
import type { Workflow } from './definition.js';
import { Actions, Palette, ViewSwitch, type PartProps } from './editor-tools.js';
import { isChanged } from './editor-store.js';
import { Graph } from './graph.js';
import { Inspector } from './inspector.js';
import { NodeTable } from './node-table.js';
import { useEditor, type EditorModel } from './use-editor.js';
import { useSave } from './use-save.js';
import css from './workflow.module.css';

const TextView = lazy(async () => ({ default: (await import('./text-view.js')).TextView }));
const NONE = new Map();

/** Keys that work on the whole page, also from a field. */
const useUndoKeys = ({ editor }: EditorModel, save: () => void): void => {
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || document.querySelector('dialog[open]')) return;
      const key = event.key.toLowerCase();
      const work =
        key === 's'
          ? save
          : key === 'y' || (key === 'z' && event.shiftKey)
            ? editor.redo
            : key === 'z'
              ? editor.undo
              : null;
      if (!work) return;
      event.preventDefault();
      work();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [editor, save]);
};

const Facts = ({ model, saving, workflow }: PartProps) => (
  <p className={css.facts}>
    <State of={workflow?.status ?? 'draft'}>{workflow === null ? 'new' : undefined}</State>
    {saving.base !== null && <span>version {saving.base}</span>}
    <span>{model.definition.nodes.length} nodes</span>
    {isChanged(model.editing) && <strong>changes not saved</strong>}
  </p>
);

const Notices = ({ model, saving, workflow }: PartProps) => {
  const { problem } = saving;
  const newer = workflow && saving.base !== null && workflow.version > saving.base;
  return (
    <>
      {problem && !saving.theirs && (
        <div className={css.problemRow}>
          <ProblemBox problem={problem} />
          {problem.status === 422 && (
            <Button onClick={() => void saving.save({ draft: true })}>Save it as a draft</Button>
          )}
        </div>
      )}
      {newer && isChanged(model.editing) && (
        <p className={css.banner} role="status">
          Version {workflow.version} was saved elsewhere while you edit version {saving.base}. When you save,
          you choose what remains.
        </p>
      )}
    </>
  );
};

const View = ({ model, view, run }: { model: EditorModel; view: string; run: RunRead }) => {
  const isPast = usePosition() !== null;
  const { definition, editing, agents, problems, current, edge, select, selectEdge, actions } = model;
  if (view === 'table') return <NodeTable model={model} run={run} isOff={isPast} />;
  if (view === 'text')
    return (
      <Suspense fallback={<Loading what="the text" />}>
        <TextView model={model} isOff={isPast} />
      </Suspense>
    );
  return (
    <div className={css.graphBox}>
      <Graph
        label="Graph of the workflow. Arrows go from node to node, Alt and arrows move one, A adds, C connects, Enter edits, Delete deletes."
        nodes={definition.nodes}
        points={editing.points}
        agents={agents ?? NONE}
        problems={problems}
        run={run?.tasks}
        current={current}
        currentEdge={edge}
        select={select}
        selectEdge={selectEdge}
        actions={isPast ? null : actions}
      />
      {definition.nodes.length === 0 && (
        <div className={css.start}>
          <Empty title="Draw the first node">
            <p>Drag an agent in here, press A in the graph, or use the button.</p>
            <Button look="primary" icon="plus" disabled={isPast} onClick={() => actions.add(null, null)}>
              Add a node
            </Button>
          </Empty>
        </div>
      )}
    </div>
  );
};

export type RunRead = ReturnType<typeof useRun>;
const useRun = () => {
  const id = useParam('run');
  const { data } = useRead(
    'getRun',
    { params: { id } },
    { changesOn: isAbout('run', 'task'), isOff: id === '' },
  );
  return id === '' ? undefined : data;
};

const RunBar = ({ run }: { readonly run: RunRead }) => {
  if (!run) return null;
  const done = run.tasks.filter(({ status }) => status === 'completed').length;
  return (
    <div className={css.runBar} role="status" aria-label="Run">
      <span>Run</span>
      <State of={run.status} />
      <span>{`${done} of ${run.tasks.length} nodes completed`}</span>
      <a href={`/runs/${run.id}`}>open the run</a>
      <IconButton icon="close" label="Leave the run" onClick={() => setParams({ run: null })} />
    </div>
  );
};

const Editor = ({ id, workflow }: { readonly id: string; readonly workflow: Workflow | null }) => {
  const model = useEditor(id, workflow);
  const saving = useSave(id, workflow, model);
  const run = useRun();
  const view = useParam('view') || 'graph';
  const isPast = usePosition() !== null;
  useUndoKeys(model, () => void saving.save());
  const parts = { model, saving, workflow };
  return (
    <>
      <PageHead
        title={model.definition.name || 'Untitled workflow'}
        tabTitle={`${workflow?.status ?? 'new'} · ${model.definition.name} · Workflow`}
        actions={<Actions {...parts} />}
      >
        <Facts {...parts} />
      </PageHead>
      <Notices {...parts} />
      <div className={css.tools}>
        <ViewSwitch view={view} />
        <Button icon="plus" disabled={isPast} onClick={() => model.actions.add(null, null)}>
          Add a node
        </Button>
        <Button
          icon="link"
          disabled={isPast || model.definition.nodes.length < 2}
          onClick={model.actions.openConnect}
        >
          Connect
        </Button>
        {view === 'graph' && (
          <Button icon="layout" disabled={isPast} onClick={model.layOutAgain}>
            Lay out
          </Button>
        )}
        <Palette model={model} isOff={isPast} />
      </div>
      <RunBar run={run} />
      <div className={css.board}>
        <div className={css.main}>
          <View model={model} view={view} run={run} />
          <p className={css.notice} role="status" aria-live="polite">
            {model.notice}
          </p>
        </div>
        <Inspector model={model} run={run} isOff={isPast} />
      </div>
      {model.isConnecting && <ConnectDialog model={model} />}
      {saving.theirs && <ConflictDialog model={model} saving={saving} theirs={saving.theirs} />}
      {model.leaving.leave && <LeaveDialog model={model} saving={saving} />}
    </>
  );
};

const SavedEditor = ({ id }: { readonly id: string }) => {
  const { data, problem, refresh } = useRead(
    'getWorkflow',
    { params: { id } },
    { changesOn: isAbout('workflow') },
  );
  if (problem && !data) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="the workflow" />;
  return <Editor id={id} workflow={data} />;
};

export const EditorPage = ({ params }: PageProps) => {
  const id = params['id'] ?? 'new';
  return id === 'new' ? <Editor id="new" workflow={null} /> : <SavedEditor id={id} />;
};
