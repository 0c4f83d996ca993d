import { useEffect, useMemo, useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import { useParam } from '../../data/router.js';
import { Loading } from '../../ui/ui.js';
import type { Points } from './editor-store.js';
import type { RunNode } from './graph-card.js';
import { renders } from './graph-card.js';
import { Graph } from './graph.js';
import { layOut } from './layout.js';
import css from './workflow.module.css';

const MAX_NODES = 2_000;
/** Time between two changes, as between two reads of a run. Three nodes change: 50 a second. */
const CHANGE_MS = 60;
const CHANGES = 3;
const STATES = ['waiting', 'running', 'completed', 'failed'] as const;
const NO_AGENTS = new Map();

/** Creates a graph with half as many edges again as nodes. */
const createNodes = (count: number): RunNode[] =>
  Array.from({ length: count }, (_, index) => ({
    ...{ id: `n${index}`, agent: 'pilot', status: STATES[index % 4] ?? 'waiting', attempt: 1 },
    needs: [index - 40, ...(index % 2 === 0 ? [index - 41] : [])]
      .filter((needed) => needed >= 0)
      .map((needed) => `n${needed}`),
  })) as unknown as RunNode[];

/** Changes the state of one node after the other. */
const useChangingNodes = (first: readonly RunNode[], isOn: boolean): readonly RunNode[] => {
  const [nodes, setNodes] = useState(first);
  useEffect(() => {
    if (!isOn) return;
    let changed = 0;
    const timer = setInterval(() => {
      const start = changed;
      changed += CHANGES;
      setNodes((before) => {
        const next = [...before];
        for (let change = start; change < start + CHANGES; change++) {
          const index = (change * 7) % first.length;
          const node = next[index];
          if (node) next[index] = { ...node, status: STATES[change % STATES.length] } as RunNode;
        }
        return next;
      });
    }, CHANGE_MS);
    return () => clearInterval(timer);
  }, [first, isOn]);
  return nodes;
};

/** Shows a graph of many nodes that change, for measurements: `/dev/graph?nodes=1000`. */
export const GraphLoad = () => {
  const count = Math.min(MAX_NODES, Math.max(1, Number(useParam('nodes')) || 1_000));
  const first = useMemo(() => createNodes(count), [count]);
  const [points, setPoints] = useState<Points | null>(null);
  const [current, setCurrent] = useState('');
  const nodes = useChangingNodes(first, points !== null);
  useEffect(() => {
    void layOut(first as unknown as Parameters<typeof layOut>[0]).then((layout) => setPoints(layout.points));
  }, [first]);
  return (
    <>
      <PageHead title="Graph" question="How fast is a graph of many nodes, 50 of which change in a second?" />
      {points === null ? (
        <Loading what="the graph" />
      ) : (
        <div className={css.graphBox} data-renders={renders.count}>
          <Graph
            label={`Graph of ${count} nodes`}
            nodes={nodes as unknown as Parameters<typeof Graph>[0]['nodes']}
            points={points}
            agents={NO_AGENTS}
            run={nodes}
            current={current}
            select={setCurrent}
          />
        </div>
      )}
    </>
  );
};
