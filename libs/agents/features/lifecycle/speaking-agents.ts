import { SpeechNotification, sessionStream, speechSubject } from '@antiphon/contracts/agent';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { createBoundedMap } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';

/** Number of agents whose newest speech is remembered. */
const MAX_AGENTS = 10_000;

/** The agents whose newest call of a model is the one that began to speak. */
const SPEAKING_SQL = `select k.agent_id from unnest($2::text[], $3::text[], $4::int[]) as k (agent_id, stream_id, attempt)
  cross join lateral (select e.type, (e.data ->> 'attempt')::int as attempt from events e
    where e.workspace = $1 and e.stream_id = k.stream_id
      and e.type in ('ModelCallStarted', 'ModelCallCompleted', 'ModelCallAborted')
    order by e.stream_version desc limit 1) c
  where c.type = 'ModelCallStarted' and c.attempt = k.attempt`;

export interface SpeakingAgentsDeps {
  readonly pool: pg.Pool;
  readonly nats: NatsLink;
  readonly logger: Logger;
}

const keyOf = ({ workspace, agentId }: Pick<SpeechNotification, 'workspace' | 'agentId'>): string =>
  `${workspace} ${agentId}`;

/**
 * Agents that speak: the first text of an answer was sent, and the answer is not in the log yet.
 * The processes tell each other by notifications. The log decides whether one still holds, so a
 * process that dies while its agent speaks leaves no trace here.
 */
export class SpeakingAgents {
  private readonly speeches = createBoundedMap<SpeechNotification>(MAX_AGENTS);

  constructor(private readonly deps: SpeakingAgentsDeps) {}

  /** Records a speech of this process, and tells the other processes and the gateways. */
  announce(speech: SpeechNotification): void {
    const { isConnected, connection } = this.deps.nats;
    this.speeches.put(keyOf(speech), speech);
    if (isConnected() && !connection.isDraining())
      connection.publish(speechSubject(speech.workspace), JSON.stringify(speech));
  }

  /** Follows speeches of other processes until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const { nats, logger } = this.deps;
    const subscription = nats.connection.subscribe(speechSubject('*'), {
      callback: (_error, message) => {
        try {
          const speech = SpeechNotification.parse(message.json());
          this.speeches.put(keyOf(speech), speech);
        } catch (error) {
          logger.warn({ err: error }, 'speech notification failed');
        }
      },
    });
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    subscription.unsubscribe();
  }

  /** Returns those of the agents that speak now. Without a known speech it asks nothing. */
  async find(workspace: string, agentIds: readonly string[]): Promise<ReadonlySet<string>> {
    const speeches = agentIds.flatMap((agentId) => this.speeches.get(keyOf({ workspace, agentId })) ?? []);
    if (speeches.length === 0) return new Set();
    const values = [
      workspace,
      speeches.map(({ agentId }) => agentId),
      speeches.map(({ sessionId }) => sessionStream(sessionId)),
      speeches.map(({ attempt }) => attempt),
    ];
    try {
      const query = { name: 'agent_speaking', text: SPEAKING_SQL, values };
      const { rows } = await inWorkspace(this.deps.pool, workspace).query<{ agent_id: string }>(query);
      return new Set(rows.map(({ agent_id: id }) => id));
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
