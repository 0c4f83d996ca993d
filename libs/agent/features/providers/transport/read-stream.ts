import { readEvents } from './answer-body.js';
import { brokenAnswer } from './failure.js';
import type { Flight } from './flight.js';
import type { ServerEvent } from './server-events.js';

/** Reads events into an answer. */
export interface StreamReader {
  /** Throws what makes the answer void. */
  take(event: ServerEvent): void;
  /** True once the model has said why it stopped. */
  isComplete(): boolean;
}

/** Sends the request through the vendor's SDK, and reads the stream that it is answered with. */
export const readStream = async (
  send: () => Promise<unknown>,
  flight: Flight,
  reader: StreamReader,
): Promise<void> => {
  await send();
  const { answer } = flight;
  if (answer === null) throw brokenAnswer('the provider answered without a stream');
  try {
    await readEvents(answer, flight, (event) => {
      reader.take(event);
      if (reader.isComplete()) flight.finishing();
    });
  } catch (error) {
    // What breaks after the model's own end takes nothing from the answer.
    if (!reader.isComplete()) throw error;
  }
  if (flight.failure !== null) throw flight.failure;
};
