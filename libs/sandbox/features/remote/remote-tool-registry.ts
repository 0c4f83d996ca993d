import { NATIVE_TOOLS } from '@antiphon/config';
import { upcast } from '@antiphon/contracts/events';
import { REMOTE_TOOLS_STREAM, RemoteToolEvent } from '@antiphon/contracts/sandbox';
import type { RefusedTool, RegisteredTool, RegisteredDeclaration } from '@antiphon/contracts/sandbox';
import { AggregateStore, digestOf } from '@antiphon/event-store';
import type { EventStore, NewEvent } from '@antiphon/event-store';
import { isoTime, toStorableJson } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import { contextFrom, currentContext } from '@antiphon/observability';
import { findRefusal, remoteToolsDecider } from '@antiphon/sandbox-domain';
import type { RemoteTools } from '@antiphon/sandbox-domain';
import type { z } from 'zod';

const SERVICE = 'sandbox';
/** Maximum number of workspaces whose tools a process keeps. */
const MAX_WORKSPACES = 1_000;
const NATIVE: ReadonlySet<string> = new Set(NATIVE_TOOLS);

export interface RemoteToolRegistryDeps {
  readonly store: Pick<EventStore, 'append' | 'readStream'>;
  readonly ids: Ids;
  readonly clock: Clock;
  /** Returns true for the name of a tool of another source. */
  readonly isTaken: (workspace: string, name: string) => Promise<boolean>;
}

export interface Registration {
  readonly tools: z.input<typeof RegisteredTool>[];
  readonly refused: z.input<typeof RefusedTool>[];
}

/** Remote tools of the workspaces: folds of their event streams. */
export class RemoteToolRegistry {
  readonly #deps: RemoteToolRegistryDeps;
  readonly #streams: AggregateStore<RemoteTools, RemoteToolEvent>;

  constructor(deps: RemoteToolRegistryDeps) {
    this.#deps = deps;
    this.#streams = new AggregateStore({
      ...{ store: deps.store, decider: remoteToolsDecider, streamOf: () => REMOTE_TOOLS_STREAM },
      parse: (recorded) => RemoteToolEvent.safeParse(upcast(recorded)).data ?? null,
      toNewEvent: (event) => this.#newEvent(event),
      cache: { maxStreams: MAX_WORKSPACES },
    });
  }

  /** Reads the tools of a workspace, with the newest facts. */
  async read(workspace: string): Promise<RemoteTools> {
    return (await this.#streams.read(workspace, REMOTE_TOOLS_STREAM)).state;
  }

  /** Returns the tools of a workspace as this process last saw them; null if it saw none. */
  kept(workspace: string): RemoteTools | null {
    return this.#streams.kept(workspace, REMOTE_TOOLS_STREAM);
  }

  /** Registers tools of a program, all in one append. A tool that is refused stops no other. */
  async register(
    workspace: string,
    by: string,
    declared: readonly RegisteredDeclaration[],
  ): Promise<Registration> {
    const now = isoTime(this.#deps.clock);
    const declarations = declared.map((one) => toStorableJson(one as JsonObject) as typeof one);
    const taken = await this.#takenNames(workspace, declarations);
    let refused: Registration['refused'] = [];
    const { state } = await this.#streams.commit(workspace, REMOTE_TOOLS_STREAM, (folded) => {
      refused = [];
      let current = folded.state;
      const events = declarations.flatMap((declaration) => {
        const refusal = findRefusal(declaration, current, (name) => taken.has(name));
        if (refusal !== null) {
          refused.push({ name: declaration.name, ...refusal });
          return [];
        }
        const digest = digestOf(declaration as JsonObject);
        const command = { type: 'RegisterRemoteTool', declaration, digest, by, now } as const;
        const decided = remoteToolsDecider.decide(command, current);
        current = decided.reduce(remoteToolsDecider.evolve, current);
        return decided;
      });
      return { events };
    });
    const isRefused = new Set(refused.map(({ name }) => name));
    const tools = declarations.flatMap(({ name }) => {
      const tool = isRefused.has(name) ? undefined : state.tools.get(name);
      return tool ? [{ name, version: tool.version, digest: tool.digest }] : [];
    });
    return { tools, refused };
  }

  /** Removes a tool. Returns false if there is none of this name. */
  async remove(workspace: string, by: string, name: string): Promise<boolean> {
    const command = { type: 'RemoveRemoteTool', name, by, now: isoTime(this.#deps.clock) } as const;
    const { isAppended } = await this.#streams.commit(workspace, REMOTE_TOOLS_STREAM, ({ state }) => ({
      events: remoteToolsDecider.decide(command, state),
    }));
    return isAppended;
  }

  async #takenNames(workspace: string, declared: readonly { readonly name: string }[]) {
    const taken = await Promise.all(
      declared.map(async ({ name }) => NATIVE.has(name) || (await this.#deps.isTaken(workspace, name))),
    );
    return new Set(declared.flatMap(({ name }, index) => (taken[index] ? [name] : [])));
  }

  #newEvent({ type, schemaVersion, data }: RemoteToolEvent): NewEvent {
    const { correlationId, causationId, traceparent } = currentContext() ?? contextFrom(SERVICE);
    const origin = { correlationId, traceparent, ...(causationId ? { causationId } : {}) };
    const metadata = { ...origin, service: SERVICE };
    return { eventId: this.#deps.ids.next(), type, schemaVersion, data: data as JsonObject, metadata };
  }
}
