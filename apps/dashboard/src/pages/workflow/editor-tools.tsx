import { useState } from 'react';
import { setParams } from '../../data/router.js';
import { ActButton } from '../../ui/act-button.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { IconButton } from '../../ui/ui.js';
import type { Workflow } from './definition.js';
import { isChanged } from './editor-store.js';
import { RunDialog } from './run-dialog.js';
import type { EditorModel } from './use-editor.js';
import type { Saving } from './use-save.js';
import css from './workflow.module.css';

const VIEWS = [
  ['graph', 'Graph'],
  ['table', 'Table'],
  ['text', 'Text'],
] as const;

export const ViewSwitch = ({ view }: { readonly view: string }) => (
  <div className={css.switch} role="group" aria-label="View">
    {VIEWS.map(([name, title]) => (
      <button
        key={name}
        type="button"
        aria-pressed={view === name}
        onClick={() => setParams({ view: name === 'graph' ? null : name })}
      >
        {title}
      </button>
    ))}
  </div>
);

/** Agents to drag into the graph. A click adds a node after the current one. */
export const Palette = ({ model, isOff }: { readonly model: EditorModel; readonly isOff: boolean }) => (
  <div className={css.palette} role="group" aria-label="Add a node of an agent">
    {[...(model.agents?.values() ?? [])].slice(0, 24).map(({ id, name, model: llm }) => (
      <button
        key={id}
        type="button"
        className={css.chip}
        draggable={!isOff}
        disabled={isOff}
        data-tip={`${llm}: click to add a node, or drag it into the graph`}
        onDragStart={(event) => event.dataTransfer.setData('text/plain', id)}
        onClick={() => model.actions.add(id, null)}
      >
        + {name}
      </button>
    ))}
  </div>
);

export interface PartProps {
  readonly model: EditorModel;
  readonly saving: Saving;
  readonly workflow: Workflow | null;
}

export const Actions = ({ model, saving }: PartProps) => {
  const { editor, editing, problems } = model;
  const [isRunning, setRunning] = useState(false);
  const hasChanges = isChanged(editing);
  const isDraft = problems.size > 0;
  return (
    <>
      <IconButton
        icon="undo"
        label="Undo (Ctrl Z)"
        disabled={editing.past.length === 0}
        onClick={editor.undo}
      />
      <IconButton
        icon="redo"
        label="Redo (Ctrl Shift Z)"
        disabled={editing.future.length === 0}
        onClick={editor.redo}
      />
      <ActButton
        permission="runs:write"
        icon="save"
        isOff={saving.isBusy || !hasChanges}
        onClick={() => void saving.save()}
      >
        {isDraft ? 'Save a draft' : `Save as version ${(saving.base ?? 0) + 1}`}
      </ActButton>
      <ActButton
        permission="runs:write"
        look="primary"
        icon="play"
        isOff={saving.isBusy || isDraft}
        onClick={() => setRunning(true)}
      >
        {hasChanges ? 'Save and run' : 'Run'}
      </ActButton>
      {model.id !== 'new' && (
        <CopyRecord
          noun="workflow"
          json={`/workflows/${model.id}`}
          command={`antiphon workflow show ${model.id}`}
        />
      )}
      {isRunning && <RunDialog model={model} saving={saving} onClose={() => setRunning(false)} />}
    </>
  );
};
