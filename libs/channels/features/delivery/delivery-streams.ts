import { ChannelMessageEvent, channelStream } from '@antiphon/contracts/agent';
import { deliveryDecider } from '@antiphon/channels-domain';
import type { Delivery, DeliveryCommand } from '@antiphon/channels-domain';
import { AggregateStore } from '@antiphon/event-store';
import type { Committed, EventStore, Folded } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { eventForms } from '@antiphon/agent-log';

/** A delivery in its workspace. */
export interface DeliveryRef {
  readonly workspace: string;
  readonly messageId: string;
}

export type DecideDelivery = (
  delivery: Delivery,
  now: string,
) => DeliveryCommand | readonly DeliveryCommand[] | null;

/** Event streams of deliveries: one for each, so that a repeated delivery finds its own. */
export class DeliveryStreams {
  private readonly streams: AggregateStore<Delivery, ChannelMessageEvent>;

  constructor(
    store: Pick<EventStore, 'append' | 'readStream'>,
    ids: Ids,
    private readonly clock: Clock,
  ) {
    this.streams = new AggregateStore({
      ...{ store, decider: deliveryDecider, ...eventForms(ChannelMessageEvent, ids, null) },
      streamOf: (_workspace, id) => channelStream(id),
    });
  }

  read({ workspace, messageId }: DeliveryRef): Promise<Folded<Delivery>> {
    return this.streams.read(workspace, messageId);
  }

  /** Decides and appends; decides again after a conflict. Throws as the decider does. */
  commit({ workspace, messageId }: DeliveryRef, decide: DecideDelivery): Promise<Committed<Delivery>> {
    return this.streams.commit(workspace, messageId, ({ state }) => {
      const commands = decide(state, isoTime(this.clock));
      const events: ChannelMessageEvent[] = [];
      let next = state;
      for (const command of commands === null ? [] : ([commands].flat() as DeliveryCommand[])) {
        const decided = deliveryDecider.decide(command, next);
        next = decided.reduce(deliveryDecider.evolve, next);
        events.push(...decided);
      }
      return { events };
    });
  }
}
