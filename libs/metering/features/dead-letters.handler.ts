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

/** Maximum number of dead letters that a list reads. */
const MAX_READ = 2_000;

type DeadLetterList = z.input<typeof listDeadLetters.reply>;

/** Dead letters of requests name no workspace: operators of the default one see them. */
const isOf = (letter: StoredDeadLetter, workspace: string): boolean =>
  (workspaceOfLetter(letter) ?? DEFAULT_WORKSPACE) === workspace;

const toView = (letter: StoredDeadLetter): DeadLetterList['messages'][number] => {
  const { sequence, consumer, subject, code, reason, deliveries, at } = letter;
  return { sequence, consumer, subject, eventId: eventIdOfLetter(letter), code, reason, deliveries, at };
};

/** Lists and replays dead letters. This service has the consumers of the log's events. */
@Controller()
export class DeadLetters {
  constructor(@Inject(NATS) private readonly link: NatsLink) {}

  @HandleRequest(listDeadLetters)
  async list({ workspace, limit }: z.output<typeof listDeadLetters.request>): Promise<DeadLetterList> {
    const messages: DeadLetterList['messages'] = [];
    let next = 1;
    for (let count = 0; count < MAX_READ; count++) {
      const letter = await readDeadLetter(this.link, next);
      if (letter === null) return { messages, hasMore: false };
      next = letter.sequence + 1;
      if (!isOf(letter, workspace)) continue;
      if (messages.length === limit) return { messages, hasMore: true };
      messages.push(toView(letter));
    }
    return { messages, hasMore: true };
  }

  @HandleRequest(replayDeadLetter)
  async replay({
    workspace,
    sequence,
  }: z.output<typeof replayDeadLetter.request>): Promise<z.input<typeof replayDeadLetter.reply>> {
    const letter = await readDeadLetter(this.link, sequence);
    if (letter?.sequence !== sequence || !isOf(letter, workspace))
      throw notFound('LOG.DEAD_LETTER_NOT_FOUND', `there is no dead letter ${sequence}`);
    if (workspaceOfLetter(letter) === undefined)
      throw rejected(
        'LOG.DEAD_LETTER_OF_REQUEST',
        'the dead letter is a request without a reply. What to do: send it again with `antiphon dlq replay`',
      );
    await requestReplay(this.link, letter);
    return { replayed: true };
  }
}
