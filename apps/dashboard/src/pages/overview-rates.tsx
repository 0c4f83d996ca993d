import { useEffect, useState } from 'react';
import { Link, usePosition } from '../data/router.js';
import { sumsOf, type RateBucket } from '../data/rate-series.js';
import { useRead } from '../data/use-read.js';
import { mostOf, roundUp } from '../ui/chart-scale.js';
import { formatCompact } from '../ui/format.js';
import { Sparkline } from '../ui/sparkline.js';
import { Loading, Panel, ProblemBox } from '../ui/ui.js';
import css from './pages.module.css';

const VALUES: readonly (readonly [label: string, valueOf: (bucket: RateBucket) => number])[] = [
  ['Events', ({ events }) => events],
  ['Turns', ({ turns }) => turns],
  ['Failures', ({ failures }) => failures],
  ['Tokens', ({ inputTokens, outputTokens }) => inputTokens + outputTokens],
];

/** Delay of the read in the present: those of what needs a person come first. */
const LATER_MS = 1_500;

/** Sums of the last hour with their courses, minute by minute, as the server counted them. */
export const OverviewRates = () => {
  const isPast = usePosition() !== null;
  const [isOn, setOn] = useState(isPast);
  useEffect(() => {
    const timer = setTimeout(() => setOn(true), isPast ? 0 : LATER_MS);
    return () => clearTimeout(timer);
  }, [isPast]);
  const options = { changesOn: () => true, isOff: !isOn && !isPast };
  const { data, problem, refresh } = useRead('readRates', { query: { span: '1h' } }, options);
  return (
    <Panel
      title={isPast ? 'Hour before the position' : 'Last hour'}
      actions={<Link to="/performance">Metrics</Link>}
      isPadded
    >
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="the rates" />}
      {data && (
        <div className={css.rates}>
          {VALUES.map(([label, valueOf]) => {
            const points = sumsOf(data, valueOf).map(({ at, value }) => ({ at, values: [value] }));
            const sum = points.reduce((total, { values }) => total + (values[0] ?? 0), 0);
            const most = mostOf(points);
            return (
              <Sparkline
                key={label}
                label={label}
                text={formatCompact(sum)}
                tip={`${label}: ${formatCompact(sum)} in 1 hour, at most ${formatCompact(most)} in a minute`}
                rows={points}
                top={roundUp(most)}
              />
            );
          })}
        </div>
      )}
    </Panel>
  );
};
