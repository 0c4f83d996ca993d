import { Handle, Position, type Node, type NodeProps } from '@xyflow/react';
import { createContext, memo, useContext } from 'react';
import type { RouteReply } from '@antiphon/client';
import { Icon } from '../../ui/icon.js';
import { State } from '../../ui/ui.js';
import css from './workflow.module.css';

export type RunNode = RouteReply<'getRun'>['tasks'][number];
export type Agent = RouteReply<'listAgents'>['agents'][number];

/** Data of the card of a node. Equal data keep the same object, so that only changed cards render. */
export interface CardData extends Record<string, unknown> {
  readonly id: string;
  readonly agentId: string;
  readonly agent: Agent | undefined;
  readonly problem: string | null;
  readonly status: RunNode['status'] | null;
  readonly attempt: number;
  readonly isCurrent: boolean;
  readonly isFixed: boolean;
}
export type CardNode = Node<CardData, 'card'>;

const SHOWN_TAGS = 2;

/** Counts the renders of cards: a test shows that only changed ones render. */
export const renders = { count: 0 };

const Tags = ({ agent }: { readonly agent: Agent | undefined }) => {
  const names = [...(agent?.capabilities ?? []), ...(agent?.tools ?? [])];
  if (names.length === 0) return <span className={css.noTags}>no tools</span>;
  return (
    <>
      {names.slice(0, SHOWN_TAGS).map((name) => (
        <span key={name} className={css.tag}>
          {name}
        </span>
      ))}
      {names.length > SHOWN_TAGS && <span className={css.more}>+{names.length - SHOWN_TAGS}</span>}
    </>
  );
};

const Corner = ({ data: { problem, status } }: { readonly data: CardData }) => {
  if (status) return <State of={status} />;
  if (problem) return <State of="invalid">problem</State>;
  return null;
};

/** True while the zoom is so small that no text of a card can be read. */
export const IsFar = createContext(false);

export const Card = memo(function Card({ data }: NodeProps<CardNode>) {
  renders.count++;
  const isFar = useContext(IsFar);
  const { id, agentId, agent, problem, status, attempt, isCurrent, isFixed } = data;
  if (isFar)
    return (
      <div
        className={css.card}
        data-current={isCurrent ? '' : undefined}
        data-status={status ?? (problem ? 'invalid' : undefined)}
      >
        <strong>{id}</strong>
      </div>
    );
  return (
    <div
      className={css.card}
      data-current={isCurrent ? '' : undefined}
      data-status={status ?? (problem ? 'invalid' : undefined)}
      data-tip={problem ?? undefined}
    >
      <Handle type="target" position={Position.Left} isConnectable={!isFixed} className={css.handle} />
      <div className={css.cardHead}>
        <strong>{id}</strong>
        <Corner data={data} />
      </div>
      <div className={css.cardAgent}>
        <Icon name="agents" size={12} />
        <span>{agent?.name ?? (agentId || 'no agent')}</span>
        {attempt > 1 && <span className={css.more}>try {attempt}</span>}
      </div>
      <div className={css.cardTags}>
        {problem && !status ? <span className={css.cardProblem}>{problem}</span> : <Tags agent={agent} />}
      </div>
      <Handle type="source" position={Position.Right} isConnectable={!isFixed} className={css.handle} />
    </div>
  );
});
