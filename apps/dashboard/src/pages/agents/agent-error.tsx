import { Time } from '../../ui/ui.js';
import type { Agent } from './agent-card.js';

/** Why an agent is in the state `error`, and when that ends. */
export const AgentError = ({ error }: { readonly error: NonNullable<Agent['error']> }) => (
  <>
    <dt>Error</dt>
    <dd>
      {error.code}, {error.failures} in a row;{' '}
      {error.trialTurnId ? (
        'one waiting turn is being tried'
      ) : (
        <>
          one waiting turn is tried at <Time at={error.retryAt} isExact />
        </>
      )}
    </dd>
  </>
);
