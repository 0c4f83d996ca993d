import { Controller, Inject } from '@nestjs/common';
import type { RequestClient } from '@antiphon/messaging';
import { REQUESTS } from '@antiphon/service-host';
import { AGENT_STORE, AgentDirectory } from '@antiphon/agents-features';
import { TurnRequested, listTurnsOfEntry, sessionStream } from '@antiphon/contracts/agent';
import type { RememberingTurn } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { encodeCursor } from '@antiphon/contracts/log';
import { turnsOfEntry } from '@antiphon/contracts/memory';
import { positionOfCursor } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { HandleRequest, requestWithRetry } from '@antiphon/messaging';
import type { z } from 'zod';
import { ContextSizer } from './context-sizer.js';
import { requestMemory } from './prepare-call.js';

type Request = z.output<typeof listTurnsOfEntry.request>;
type Candidate = z.output<typeof turnsOfEntry.reply>['turns'][number];
type Requested = z.output<typeof TurnRequested>['data'];

/** Maximum length of a message in the reply, characters. */
const PREVIEW_LENGTH = 200;

/** Lists the turns whose context had an entry of memory. */
@Controller()
export class ListTurnsOfEntry {
  constructor(
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(REQUESTS) readonly requests: RequestClient,
    @Inject(ContextSizer) readonly sizes: ContextSizer,
  ) {}

  @HandleRequest(listTurnsOfEntry)
  async handle(request: Request): Promise<z.input<typeof listTurnsOfEntry.reply>> {
    const { workspace, memoryId, callerAgent, cursor, limit, at, includesContent } = request;
    const before = positionOfCursor(cursor);
    const wanted = {
      ...{ workspace, memoryId, limit },
      ...(callerAgent === undefined ? {} : { callerAgent }),
      ...(before === null ? {} : { before }),
      ...(at === undefined ? {} : { at }),
    };
    const found = await requestWithRetry((options) => this.requests.request(turnsOfEntry, wanted, options));
    const turns: RememberingTurn[] = [];
    for (const turn of found.turns) {
      const asked = await this.#readRequest(workspace, turn);
      if (asked === null || !(await this.#isRemembered(request, turn, asked))) continue;
      turns.push(toView(turn, asked, includesContent));
    }
    const last = found.turns.at(-1);
    return {
      turns,
      nextCursor: found.hasMore && last ? encodeCursor(last.position) : null,
      ...(at === undefined ? {} : { position: at, head: found.head }),
    };
  }

  /** Builds memory's part of the context of a turn again, and looks for the entry in it. */
  async #isRemembered({ workspace, memoryId }: Request, turn: Candidate, asked: Requested): Promise<boolean> {
    const { agentId, sessionId, version, position } = turn;
    const unknown = { base: agentId, identity: null, provider: '', model: '' };
    const agent = (await this.agents.load(workspace, agentId)) ?? unknown;
    const source = { workspace, sessionId, fold: { version } };
    const upcoming = { sessionKey: turn.sessionKey, content: asked.content };
    const { facts } = await requestMemory(this, source, agent, upcoming, position - 1);
    return facts.some(({ factId }) => factId === memoryId);
  }

  /** Returns the request of a turn; null if it was archived since. */
  async #readRequest(workspace: string, { sessionId, version }: Candidate): Promise<Requested | null> {
    const page = { fromVersion: version, limit: 1 };
    const { events } = await this.store.readStreamPage(workspace, sessionStream(sessionId), page);
    const [event] = events;
    const parsed = event?.streamVersion === version ? TurnRequested.safeParse(upcast(event)) : undefined;
    return parsed?.success ? parsed.data.data : null;
  }
}

const toView = (
  { sessionId, turnId, agentId, position, isDeleted }: Candidate,
  { content, requestedAt }: Requested,
  includesContent: boolean,
): RememberingTurn => ({
  ...{ sessionId, turnId, agentId, position, requestedAt },
  content: includesContent && !isDeleted ? content.slice(0, PREVIEW_LENGTH) : null,
});
