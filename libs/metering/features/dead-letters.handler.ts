import { Controller, Inject } from '@nestjs/common';
import { DEFAULT_WORKSPACE, listDeadLetters, replayDeadLetter } from '@antiphon/contracts/log';
import { notFound, rejected } from '@antiphon/kernel';
import {
  eventIdOfLetter,
  HandleRequest,
  readDeadLetter,
  replayDeadLetter as requestReplay,
  workspaceOfLetter,
} from '@antiphon/messaging';
import type { NatsLink, StoredDeadLetter } from '@antiphon/messaging';
import { NATS } from '@antiphon/service-host';
import type { z } from 'zod';

/** Maximum number of dead letters, of all workspaces, that one page reads. */
const MAX_READ = 2_000;

type DeadLetterList = z.input<typeof listDeadLetters.reply>;

/** Dead letters of requests name no workspace: operators of the default one see them. */
const isOf = (letter: StoredDeadLetter, workspace: string): boolean =>
  (workspaceOfLetter(letter) ?? DEFAULT_WORKSPACE) === workspace;

const isOfRequest = (letter: StoredDeadLetter): boolean => workspaceOfLetter(letter) === undefined;

const toView = (letter: StoredDeadLetter): DeadLetterList['messages'][number] => {
  const { sequence, consumer, subject, code, reason, deliveries, at } = letter;
  return { sequence, consumer, subject, eventId: eventIdOfLetter(letter), code, reason, deliveries, at };
};

/** Lists and replays dead letters. This service has the consumers of the log's events. */
@Controller()
export class DeadLetters {
  constructor(@Inject(NATS) private readonly link: NatsLink) {}

  @HandleRequest(listDeadLetters)
  async list(request: z.output<typeof listDeadLetters.request>): Promise<DeadLetterList> {
    const { workspace, limit, includesRequests } = request;
    const messages: DeadLetterList['messages'] = [];
    let { after } = request;
    for (let count = 0; count < MAX_READ; count++) {
      const letter = await readDeadLetter(this.link, after + 1);
      if (letter === null) return { messages, nextAfter: null };
      if (isOf(letter, workspace) && (includesRequests || !isOfRequest(letter))) {
        if (messages.length === limit) break;
        messages.push(toView(letter));
      }
      after = letter.sequence;
    }
    return { messages, nextAfter: after };
  }

  @HandleRequest(replayDeadLetter)
  async replay({
    workspace,
    sequence,
  }: z.output<typeof replayDeadLetter.request>): Promise<z.input<typeof replayDeadLetter.reply>> {
    const letter = await readDeadLetter(this.link, sequence);
    if (letter?.sequence !== sequence || !isOf(letter, workspace))
      throw notFound('LOG.DEAD_LETTER_NOT_FOUND', `there is no dead letter ${sequence}`);
    if (isOfRequest(letter))
      throw rejected(
        'LOG.DEAD_LETTER_OF_REQUEST',
        'the dead letter is a request without a reply. What to do: send it again with `antiphon dlq replay`',
      );
    await requestReplay(this.link, letter);
    return { replayed: true };
  }
}
