import { useState, type FormEvent } from 'react';
import { navigate } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { boundOf, reservedOf, reservedWith, type Reserved } from './cost-bound.js';
import { client } from '../../data/gateway.js';
import { toolsOf } from '../../data/compare.js';
import { useIdentity } from '../../data/identity.js';
import { sumUsage, type Transcript, type Turn } from '../../data/transcript.js';
import { useFetched } from '../../data/use-read.js';
import { countOf, formatCompact, formatUsd } from '../../ui/format.js';
import { Button, css as ui, Dialog, Field, Loading, ProblemBox } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';

export type Branch = 'fork' | 'whatif';

interface BranchProps {
  readonly branch: Branch;
  readonly sessionId: string;
  readonly transcript: Transcript;
  readonly turn: Turn;
  /** Number of turns before those of the transcript; null if it is not known. */
  readonly before: number | null;
  readonly onClose: () => void;
}

const MAX_TURNS = 20;

const useModels = (): readonly string[] => {
  const { data } = useFetched('branch models', () => client.http.listAgents());
  const models = data?.agents.map(({ provider, model }) => `${provider}/${model ?? ''}`) ?? [];
  return [...new Set(models)].filter((model) => !model.endsWith('/')).toSorted();
};

interface BoundProps {
  readonly sessionId: string;
  readonly turns: readonly Turn[];
  readonly agentId: string | null;
  readonly model: string;
}

const MAX_RESERVATIONS = 1_000;

/** Reads the reservations of turns, and the newest of all, which have the prices of models. */
const readReserved = async (turns: readonly Turn[], signal: AbortSignal): Promise<readonly Reserved[]> => {
  const after = Math.min(...turns.map(({ firstPosition }) => firstPosition)) - 1;
  const ends = turns.map(({ endPosition }) => endPosition ?? Number.POSITIVE_INFINITY);
  const at = Math.max(...ends);
  const query = { type: 'BudgetReserved', limit: MAX_RESERVATIONS } as const;
  const upTo = Number.isFinite(at) ? { at } : {};
  const newest = await client.http.readEvents({ query: { ...query, order: 'desc' }, signal });
  const own = await client.http.readEvents({ query: { ...query, after, ...upTo }, signal });
  return [...own.events, ...newest.events.toReversed()]
    .filter((event, index, all) => all.findIndex(({ position }) => position === event.position) === index)
    .map(reservedOf);
};

/** Says what the repeated turns have cost, and what the what-if can cost at most. */
const CostBound = ({ sessionId, turns, agentId, model }: BoundProps) => {
  const { data, problem } = useFetched(`bound ${sessionId}`, (signal) =>
    client.http.readBudgets({ query: { session: sessionId, ...(agentId && { agent: agentId }) }, signal }),
  );
  const turnIds = turns.map(({ turnId }) => turnId).join(' ');
  const reservations = useFetched(`reserved ${turnIds}`, (signal) => readReserved(turns, signal));
  const failure = problem ?? reservations.problem;
  if (failure) return <ProblemBox problem={failure} />;
  if (!data || !reservations.data) return <Loading what="the bound of the cost" />;
  const tokens = sumUsage(turns, 'inputTokens') + sumUsage(turns, 'outputTokens');
  const reserved = reservedWith(reservations.data, turns, model);
  return (
    <dl className={ui.facts} aria-label="Cost before it starts">
      <dt>Cost on record</dt>
      <dd>
        {formatUsd(sumUsage(turns, 'costMicroUsd'))} for {formatCompact(tokens)} tokens
      </dd>
      <dt>The same calls</dt>
      <dd>
        {reserved
          ? `at most ${formatUsd(reserved.microUsd)} for ${countOf(reserved.calls, 'model call')}`
          : 'not known: a reservation of these calls or the price of this model is missing'}
      </dd>
      <dt>In all</dt>
      <dd>{boundOf(data.scopes) ?? 'no budget limits it: the page of money sets one'}</dd>
    </dl>
  );
};

const NotRepeated = ({ turns }: { readonly turns: readonly Turn[] }) => {
  const tools = turns.flatMap(toolsOf);
  if (tools.length === 0) return <p>No tool was called.</p>;
  return (
    <>
      <p>{countOf(tools.length, 'tool call')} will not run again. The results come from the record:</p>
      <ul>
        {tools.slice(0, 10).map(({ callId, name }) => (
          <li key={callId}>
            <VisibleText text={name} />
          </li>
        ))}
        {tools.length > 10 && <li>and {tools.length - 10} more</li>}
      </ul>
    </>
  );
};

/** Returns the turns that a branch continues from, or repeats. */
const turnsOf = ({ turns }: Transcript, turn: Turn, branch: Branch, count: number) => {
  const index = turns.findIndex(({ turnId }) => turnId === turn.turnId);
  const kept = turns.slice(0, branch === 'fork' ? index + 1 : index);
  const repeated = branch === 'fork' ? [] : turns.slice(index, index + count);
  return { kept, repeated, most: Math.min(MAX_TURNS, turns.length - index) };
};

const TEXTS = {
  fork: {
    title: 'Fork after this turn',
    submit: 'Fork',
    cost: 'A fork itself calls no model: it costs nothing.',
  },
  whatif: { title: 'What if, from this turn', submit: 'Start the what-if', cost: '' },
} as const;

const ModelField = ({ value, change }: { value: string; change: (model: string) => void }) => {
  const models = useModels();
  return (
    <Field label="Model">
      {(props) => (
        <select {...props} value={value} onChange={(event) => change(event.target.value)}>
          <option value="">the model of its agent</option>
          {models.map((model) => (
            <option key={model}>{model}</option>
          ))}
        </select>
      )}
    </Field>
  );
};

interface CountProps {
  readonly value: number;
  readonly most: number;
  readonly change: (count: number) => void;
}

const CountField = ({ value, most, change }: CountProps) => (
  <Field label="Turns to repeat" hint={`1 to ${most}`}>
    {(props) => (
      <input
        {...props}
        type="number"
        min={1}
        max={most}
        value={value}
        onChange={(event) => change(Math.max(1, Math.min(most, Math.round(Number(event.target.value)))))}
      />
    )}
  </Field>
);

/** Asks for the model of a fork or a what-if, and shows what it inherits and may cost. */
export const BranchDialog = ({ branch, sessionId, transcript, turn, before, onClose }: BranchProps) => {
  const { run, isBusy, problem } = useAct();
  const { permissions } = useIdentity();
  const [choice, setChoice] = useState('');
  const [count, setCount] = useState(1);
  const { kept, repeated, most } = turnsOf(transcript, turn, branch, count);
  const isAllowed = permissions === null || permissions.includes('sessions:write');
  const start = async (): Promise<void> => {
    const slash = choice.indexOf('/');
    const model = choice === '' ? {} : { provider: choice.slice(0, slash), model: choice.slice(slash + 1) };
    const atVersion = branch === 'fork' ? (turn.endVersion ?? turn.firstVersion) : turn.firstVersion - 1;
    const more = branch === 'whatif' ? { whatIf: { turns: count } } : {};
    const made = await client.http.forkSession({
      params: { id: sessionId },
      body: { atVersion, ...model, ...more },
    });
    navigate(
      branch === 'fork' ? `/sessions/${made.sessionId}` : `/compare?a=${sessionId}&b=${made.sessionId}`,
    );
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    run(start);
  };
  const { title, submit: word, cost } = TEXTS[branch];
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit} style={{ display: 'contents' }}>
        {problem && <ProblemBox problem={problem} />}
        <p>
          The new session inherits{' '}
          {before === null ? 'every turn up to here' : countOf(before + kept.length, 'turn')} of this one,
          which stays unchanged.
        </p>
        <ModelField value={choice} change={setChoice} />
        {branch === 'whatif' && <CountField value={count} most={most} change={setCount} />}
        {branch === 'fork' && before !== 0 ? (
          <p>No tool call of these turns will run again. The results come from the record.</p>
        ) : (
          <NotRepeated turns={branch === 'fork' ? kept : repeated} />
        )}
        {branch === 'fork' ? (
          <p>{cost}</p>
        ) : (
          <CostBound {...{ sessionId, turns: repeated, agentId: transcript.agentId, model: choice }} />
        )}
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={isBusy || !isAllowed}>
            {word}
          </Button>
        </div>
      </form>
    </Dialog>
  );
};
