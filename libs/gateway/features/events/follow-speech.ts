import { SpeechNotification, speechSubject } from '@antiphon/contracts/agent';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { OnSpeech } from './agent-streams.js';

/** Subscribes to notifications of first texts. A lost one is repeated while text follows. */
export const followSpeech =
  ({ connection }: NatsLink, logger: Logger): OnSpeech =>
  (workspace, hear) => {
    const subscription = connection.subscribe(speechSubject(workspace), {
      callback: (_error, message) => {
        try {
          hear(SpeechNotification.parse(message.json()));
        } catch (error) {
          logger.warn({ err: error }, 'speech notification failed');
        }
      },
    });
    return () => subscription.unsubscribe();
  };
