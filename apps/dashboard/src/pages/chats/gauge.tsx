import type { Turn } from '../../data/transcript.js';
import { Link } from '../../data/router.js';
import { formatCompact } from '../../ui/format.js';
import { useTurnContext } from './turn-files.js';
import css from './chats.module.css';

interface GaugeProps {
  readonly sessionId: string;
  /** Newest turn that has called a model. */
  readonly turn: Turn;
}

/** Says how much of its context the last call of a model has used. */
export const Gauge = ({ sessionId, turn }: GaugeProps) => {
  const context = useTurnContext(sessionId, turn);
  if (!context) return null;
  const { tokens, limitTokens } = context;
  const share = limitTokens === 0 ? 0 : Math.min(100, Math.round((100 * tokens) / limitTokens));
  return (
    <Link
      to={`/sessions/${sessionId}/why/${turn.turnId}`}
      className={css.gauge}
      data-tip={`${formatCompact(tokens)} of ${formatCompact(limitTokens)} tokens. Opens the parts`}
    >
      <meter min={0} max={100} value={share} aria-hidden="true" />
      context {share} %
    </Link>
  );
};
