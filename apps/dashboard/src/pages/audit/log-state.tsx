import type { RouteReply } from '@antiphon/client';
import { serverNow } from '../../data/gateway.js';
import { isRootLate } from '../../data/late-roots.js';
import { useRead } from '../../data/use-read.js';
import { countOf, formatNumber } from '../../ui/format.js';
import { css as ui, Loading, numberColumn, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import css from '../pages.module.css';

const anyEvent = (): boolean => true;

type RootState = RouteReply<'listRoots'>;

interface SigningProps extends Pick<RootState, 'signs' | 'everySeconds'> {
  readonly isLate: boolean;
}

const Signing = ({ signs, isLate, everySeconds }: SigningProps) => {
  if (!signs) return <State of="warning">unsigned: no key is configured</State>;
  const every = `${formatNumber(everySeconds)} s`;
  return isLate ? (
    <State of="warning">a root is late: one is due every {every}</State>
  ) : (
    <State of="ok">signs a root every {every}</State>
  );
};

/** Signed roots of the log: what is covered, and when the next one comes. */
export const Roots = () => {
  const { data, problem, refresh } = useRead(
    'listRoots',
    { query: { limit: 5 } },
    { hasPast: false, changesOn: anyEvent },
  );
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="signed roots" />;
  const { signs, refusal, position, uncovered, everySeconds, nextAt, roots } = data;
  const [newest] = roots;
  const isLate = isRootLate(data, serverNow());
  return (
    <dl className={`${ui.facts} ${css.pad}`}>
      <dt>Signing</dt>
      <dd>
        <Signing signs={signs} isLate={isLate} everySeconds={everySeconds} />
      </dd>
      <dt>Last signed root</dt>
      <dd>
        {position === null || position === 0 ? 'none yet' : `over event ${formatNumber(position)}`}
        {newest && (
          <>
            , <Time at={newest.at} />
            <div className={ui.mono}>{newest.root}</div>
          </>
        )}
      </dd>
      {uncovered !== null && (
        <>
          <dt>Not covered yet</dt>
          <dd>
            {countOf(uncovered, 'event')}
            {uncovered > 0 && nextAt !== null && (
              <>
                {isLate ? ', whose root was due ' : ', covered by the next root '}
                <Time at={nextAt} />
              </>
            )}
          </dd>
        </>
      )}
      {refusal !== null && (
        <>
          <dt>Refused</dt>
          <dd>{refusal}</dd>
        </>
      )}
    </dl>
  );
};

/** Read models with their positions and what they lack. */
export const Projections = () => {
  const { data, problem, refresh } = useRead('listProjections', {}, { hasPast: false, changesOn: anyEvent });
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="read models" />;
  return (
    <Table
      label="Read models"
      columns={['Read model', numberColumn('Position'), numberColumn('Behind'), 'State']}
    >
      {data.projections.map(({ name, position, lag, parked, stale }) => (
        <tr key={name}>
          <td className={css.name}>{name}</td>
          <td data-end="">{position === null ? '–' : formatNumber(position)}</td>
          <td data-end="">{lag === null ? '–' : formatNumber(lag)}</td>
          <td>
            {stale && <State of="failed">must be rebuilt</State>}
            {parked > 0 && <State of="warning">{`${parked} stopped`}</State>}
            {!stale && parked === 0 && <State of="ok" />}
          </td>
        </tr>
      ))}
    </Table>
  );
};
