import { createWakeSignal } from '@antiphon/kernel';
import type { WakeSignal } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';

/** Subject that tells the agent processes of new events of tasks. */
export const TASK_CHANGE_SUBJECT = 'hint.agent.tasks';
/** Time within which changes share one notification, ms. */
const PUBLISH_DEBOUNCE_MS = 5;

/** Tells the agent processes that tasks changed. */
export class TaskChanges {
  /** Woken by changes of any process. */
  readonly signal: WakeSignal = createWakeSignal();
  private publishing: NodeJS.Timeout | undefined;

  constructor(private readonly nats: NatsLink) {}

  /** Tells every process, this one too, that tasks changed. A lost notification costs a poll. */
  announce(): void {
    const { nats } = this;
    this.publishing ??= setTimeout(() => {
      this.publishing = undefined;
      this.signal.wake();
      if (nats.isConnected() && !nats.connection.isDraining()) nats.connection.publish(TASK_CHANGE_SUBJECT);
    }, PUBLISH_DEBOUNCE_MS);
  }

  /** Follows the changes of other processes. Returns the end of it. */
  follow(): () => void {
    const subscription = this.nats.connection.subscribe(TASK_CHANGE_SUBJECT, {
      callback: () => this.signal.wake(),
    });
    return () => subscription.unsubscribe();
  }

  close(): void {
    clearTimeout(this.publishing);
  }
}
