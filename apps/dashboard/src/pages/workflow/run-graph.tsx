import type { RouteReply } from '@antiphon/client';
import { useEffect, useState } from 'react';
import { setParams, useParam } from '../../data/router.js';
import { Button, Empty, Panel } from '../../ui/ui.js';
import { countEdges } from './edge-state.js';
import { pointOf } from './editor-store.js';
import { Graph } from './graph.js';
import { CopyTask, RunResult } from './run-result.js';
import { layOut, type Layout } from './layout.js';
import { readPlaces, useAgents } from './use-editor.js';
import css from './workflow.module.css';

type Run = RouteReply<'getRun'>;
const NONE = new Map();

/** Places of the nodes: those of the editor in this browser, else a layout. */
const useLayout = ({ workflowId, tasks }: Run): Layout => {
  const [layout, setLayout] = useState<Layout>({ points: {}, notice: null });
  const shape = JSON.stringify(tasks.map(({ id, needs }) => [id, needs]));
  useEffect(() => {
    const kept = workflowId === null ? {} : readPlaces(workflowId);
    if (tasks.every(({ id }) => pointOf(kept, id))) return setLayout({ points: kept, notice: null });
    let isGone = false;
    void layOut(tasks).then((found) => !isGone && setLayout(found));
    return () => {
      isGone = true;
    };
  }, [shape, workflowId]);
  return layout;
};

/** The number of edges in each state, with the line that shows it. */
const EdgeLegend = ({ run }: { readonly run: Run }) => (
  <ul className={css.legend} aria-label="Edges">
    {countEdges(run.tasks, run.tasks).map(({ state, text }) => (
      <li key={state} data-state={state}>
        <svg width="28" height="6" viewBox="0 0 28 6" aria-hidden="true">
          <path d="M0 3H28" />
        </svg>
        {text}
      </li>
    ))}
  </ul>
);

/** Largest running run whose newest node is chosen: a larger graph would move with each start. */
const MAX_FOLLOWED = 16;

const timeOf = (time: string | null): number => (time === null ? 0 : Date.parse(time));

/** Returns the node that a run is about: the first that failed, else the last that ended or began. */
const mainNode = ({ status, tasks }: Run): Run['tasks'][number] | undefined => {
  const failed = tasks.find((task) => task.status === 'failed');
  if (failed || (status === 'running' && tasks.length > MAX_FOLLOWED)) return failed;
  const begun = tasks.filter(({ startedAt }) => startedAt !== null);
  const newest = ({ startedAt, endedAt }: Run['tasks'][number]): number =>
    Math.max(timeOf(startedAt), timeOf(endedAt));
  return begun.toSorted((a, b) => newest(b) - newest(a))[0];
};

/** The graph of a run with the state of each node, and the result of the current one. */
export const RunGraph = ({ run }: { readonly run: Run }) => {
  const agents = useAgents();
  const { points, notice } = useLayout(run);
  const wanted = useParam('node');
  const task = run.tasks.find(({ id }) => id === wanted) ?? mainNode(run);
  const failed = run.tasks.filter(({ status }) => status === 'failed');
  const goToFailure = (): void => {
    const next = failed[(failed.findIndex(({ id }) => id === task?.id) + 1) % failed.length];
    if (next) setParams({ node: next.id });
  };
  return (
    <div className={css.board}>
      <Panel
        title="Graph"
        actions={failed.length > 0 && <Button onClick={goToFailure}>Next failure (N)</Button>}
      >
        <div className={css.graphBox} data-size="low">
          <Graph
            label="Graph of the run. Arrows go from node to node, N to the next failure."
            nodes={run.tasks}
            points={points}
            agents={agents ?? NONE}
            run={run.tasks}
            current={task?.id ?? ''}
            select={(id) => setParams({ node: id })}
          />
        </div>
        <EdgeLegend run={run} />
        <p className={css.notice} role="status">
          {notice}
        </p>
      </Panel>
      <Panel
        title={task ? `Result of ${task.id}` : 'Result of a node'}
        isPadded
        actions={task && <CopyTask runId={run.id} task={task} />}
      >
        {task ? (
          <RunResult task={task} />
        ) : (
          <Empty title="No node is chosen">
            <p>Choose one in the graph or in the table to read its output or error.</p>
          </Empty>
        )}
      </Panel>
    </div>
  );
};
