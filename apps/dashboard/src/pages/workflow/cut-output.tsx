import { Link } from '../../data/router.js';
import { css as ui } from '../../ui/ui.js';
import type { RunNode } from './graph-card.js';

/** Leads to the whole output of a node whose task has only a part of it. */
export const CutOutput = ({ sessionId }: Pick<RunNode, 'sessionId'>) => (
  <p className={ui.muted}>
    It is cut. {sessionId && <Link to={`/sessions/${sessionId}`}>The whole output is in its session</Link>}
  </p>
);
