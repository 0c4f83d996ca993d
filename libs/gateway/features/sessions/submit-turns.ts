import { Inject, Injectable } from '@nestjs/common';
import { submitTurn } from '@antiphon/contracts/agent';
import { createBoundedMap } from '@antiphon/kernel';
import { requestWithRetry, type RequestOptions } from '@antiphon/messaging';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import type { GatewayRequests } from '../gateway.ports.js';

type Message = z.input<typeof submitTurn.request>;
type Accepted = z.output<typeof submitTurn.reply>;

/** Maximum number of targets whose driver a gateway remembers. */
const MAX_DRIVERS = 10_000;

/**
 * Submits turns to the process that drives their session, if an earlier reply named it. Another
 * process would have to read the session and tell the driver. It is a hint: any process accepts a
 * turn.
 */
@Injectable()
export class SubmitTurns {
  /** Process by workspace and target. */
  private readonly drivers = createBoundedMap<string>(MAX_DRIVERS);

  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  /** Resolves once the turn is accepted. With an idempotency key it retries after a timeout. */
  async submit(message: Message): Promise<Accepted> {
    const key = `${message.workspace} ${JSON.stringify(message.target)}`;
    const send = async (options?: RequestOptions): Promise<Accepted> => {
      try {
        const processId = this.drivers.get(key);
        return await this.requests.request(submitTurn, message, { ...options, processId });
      } catch (error) {
        // It may have stopped, or not answer in time: the next request goes to any process.
        this.drivers.delete(key);
        throw error;
      }
    };
    // Without a key a retry could send the message twice.
    const turn = await (message.idempotencyKey === undefined ? send() : requestWithRetry(send));
    if (turn.driver === null) this.drivers.delete(key);
    else this.drivers.put(key, turn.driver);
    return turn;
  }
}
