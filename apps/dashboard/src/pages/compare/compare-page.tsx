import { useEffect, useRef, type RefObject } from 'react';
import { hasSingleKeys } from '../../app/keys.js';
import { PageHead } from '../../app/page-head.js';
import { Link, setParams, useParam, usePosition } from '../../data/router.js';
import { compareSessions, type Comparison, type Side } from '../../data/compare.js';
import { isAbout } from '../../data/event-pages.js';
import { sumUsage } from '../../data/transcript.js';
import { useRead } from '../../data/use-read.js';
import { formatCompact, formatUsd, shortId } from '../../ui/format.js';
import { Button, css as ui, Empty, Loading, Panel, ProblemBox, Table, numberColumn } from '../../ui/ui.js';
import { useSessionLog } from '../session/session-log.js';
import { useTranscript } from '../session/use-session.js';
import pages from '../pages.module.css';
import { PairView } from './pair-view.js';
import css from './compare.module.css';

const Picker = ({ name, label, value }: { name: 'a' | 'b'; label: string; value: string }) => {
  const { data } = useRead('listSessions', { query: { limit: 200 } }, { changesOn: isAbout('session') });
  const known = data?.sessions ?? [];
  return (
    <label className={css.picker}>
      {label}
      <select value={value} onChange={(event) => setParams({ [name]: event.target.value }, {})}>
        <option value="">choose one</option>
        {value !== '' && !known.some(({ id }) => id === value) && <option value={value}>{value}</option>}
        {known.map(({ id, title, agentId }) => (
          <option key={id} value={id}>
            {`${title ?? 'no turn'} (${agentId}, ${shortId(id)})`}
          </option>
        ))}
      </select>
    </label>
  );
};

const useSide = (id: string) => {
  const log = useSessionLog(id, { isWhole: true });
  const transcript = useTranscript(log, usePosition());
  return { id, transcript, problem: log.problem, isLoaded: log.isLoaded };
};

/** Says in a sentence where two sessions part. */
const partingOf = ({ pairs, shared, firstDifference }: Comparison): string => {
  const first = shared === 1 ? 'first turn' : `first ${shared} turns`;
  const before = shared > 0 ? `Both have the ${first}. ` : '';
  if (firstDifference < 0) return `${before}No turn differs: message, model, tools and answer are equal.`;
  const pair = pairs[firstDifference];
  const turn = `turn ${shared + firstDifference + 1}`;
  if (!pair?.a || !pair.b)
    return `${before}They part at ${turn}: only ${pair?.a ? 'the left' : 'the right'} has it.`;
  const fields = pair.differs.filter((field) => field !== 'cost').join(', ');
  return `${before}They part at ${turn}: ${fields}.`;
};

const Row = ({ name, side }: { readonly name: string; readonly side: Side }) => {
  const { agentId, turns, forkedFrom } = side.transcript;
  return (
    <tr>
      <th scope="row">
        <Link to={`/sessions/${side.id}`}>{`${name} ${shortId(side.id)}`}</Link>
      </th>
      <td>{agentId}</td>
      <td>
        {forkedFrom
          ? `${forkedFrom.purpose === 'whatif' ? 'what-if' : 'fork'} of ${shortId(forkedFrom.sessionId)} after event ${forkedFrom.version}`
          : 'no fork'}
      </td>
      <td data-end="">{turns.length}</td>
      <td data-end="">{formatCompact(sumUsage(turns, 'inputTokens'))}</td>
      <td data-end="">{formatCompact(sumUsage(turns, 'outputTokens'))}</td>
      <td data-end="">{formatUsd(sumUsage(turns, 'costMicroUsd'))}</td>
    </tr>
  );
};

const COLUMNS = [
  ...['Session', 'Agent', 'Origin'],
  ...['Turns', 'Tokens in', 'Tokens out', 'Cost'].map(numberColumn),
];

/** Moves the focus to the next or the previous turn that differs. */
const useDifferences = (list: RefObject<HTMLElement | null>) => {
  const go = (step: 1 | -1): void => {
    const found = [...(list.current?.querySelectorAll<HTMLElement>('[data-differs]') ?? [])];
    if (found.length === 0) return;
    const at = found.findIndex((turn) => turn.contains(document.activeElement));
    const next = at < 0 ? (step > 0 ? 0 : found.length - 1) : (at + step + found.length) % found.length;
    found[next]?.focus();
    found[next]?.scrollIntoView({ block: 'start' });
  };
  const latest = useRef(go);
  latest.current = go;
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented;
      const isField = event.target instanceof HTMLElement && event.target.matches('input, select, textarea');
      if (!isPlain || isField || !hasSingleKeys.get()) return;
      if (event.key === 'n') latest.current(1);
      if (event.key === 'p') latest.current(-1);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return go;
};

/** Says up to which event two sessions are the same, with the hash that proves it. */
const Shared = ({ a, b }: { readonly a: Side; readonly b: Side }) => {
  const points = [a.transcript.forkedFrom, b.transcript.forkedFrom];
  const point = points.find((one) => one?.sessionId === a.id || one?.sessionId === b.id);
  if (!point) return null;
  return (
    <p className={pages.pad}>
      {`Equal through event ${point.version} of the origin, with the same hash `}
      <code className={`${ui.mono} ${css.hash}`}>{point.hash}</code>
    </p>
  );
};

const Compared = ({ a, b }: { readonly a: Side; readonly b: Side }) => {
  const comparison = compareSessions(a, b);
  const { pairs, shared, firstDifference } = comparison;
  const list = useRef<HTMLDivElement>(null);
  const go = useDifferences(list);
  useEffect(() => {
    const turn = list.current?.querySelector('[data-differs]');
    if (turn && turn.getBoundingClientRect().bottom > innerHeight) turn.scrollIntoView({ block: 'start' });
  }, [a.id, b.id, firstDifference]);
  return (
    <div className={pages.stack}>
      <Panel
        title="Where they part"
        actions={
          <span className={css.steps}>
            <Button icon="previous" disabled={firstDifference < 0} onClick={() => go(-1)}>
              Previous difference
            </Button>
            <Button icon="next" disabled={firstDifference < 0} onClick={() => go(1)}>
              Next difference
            </Button>
          </span>
        }
      >
        <p className={pages.pad} role="status">
          {partingOf(comparison)}
        </p>
        <Shared a={a} b={b} />
        <Table label="Sessions" columns={COLUMNS}>
          <Row name="Left:" side={a} />
          <Row name="Right:" side={b} />
        </Table>
      </Panel>
      <div ref={list} className={pages.stack}>
        {pairs.map((pair, index) => (
          <PairView key={pair.key} pair={pair} number={shared + index + 1} a={a.id} b={b.id} />
        ))}
      </div>
    </div>
  );
};

const Both = ({ a, b }: { readonly a: string; readonly b: string }) => {
  const [left, right] = [useSide(a), useSide(b)];
  const problem = left.problem ?? right.problem;
  if (problem) return <ProblemBox problem={problem} />;
  if (!left.isLoaded || !right.isLoaded) return <Loading what="both sessions" />;
  return <Compared a={left} b={right} />;
};

/** Shows two sessions next to each other, such as a fork and its origin. */
export const ComparePage = () => {
  const [a, b] = [useParam('a'), useParam('b')];
  return (
    <>
      <PageHead title="Compare" question="Where do these two sessions part, and what did each cost?" />
      <div className={pages.filters}>
        <Picker name="a" label="Left" value={a} />
        <Picker name="b" label="Right" value={b} />
        <Button disabled={a === '' && b === ''} onClick={() => setParams({ a: b, b: a }, {})}>
          Swap the sides
        </Button>
      </div>
      {a !== '' && b !== '' ? (
        <Both key={`${a} ${b}`} a={a} b={b} />
      ) : (
        <Empty title="Choose two sessions">
          <p className={ui.muted}>A fork and its origin show what another model or message changed.</p>
        </Empty>
      )}
    </>
  );
};
