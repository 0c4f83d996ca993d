import { Controller, Inject } from '@nestjs/common';
import { DEFAULT_WORKSPACE, listLetters, replayLetter } from '@antiphon/contracts/log';
import { notFound, rejected } from '@antiphon/kernel';
import {
  eventIdOfLetter,
  HandleRequest,
  readDeadLetter,
  replayDeadLetter,
  workspaceOfLetter,
} from '@antiphon/messaging';
import type { NatsLink, StoredDeadLetter } from '@antiphon/messaging';
import { NATS } from '@antiphon/service-host';
import type { z } from 'zod';

/** Maximum number of letters that a list reads. */
const MAX_READ = 2_000;

type Letters = z.input<typeof listLetters.reply>;

/** Letters of requests name no workspace: operators of the default one see them. */
const isOf = (letter: StoredDeadLetter, workspace: string): boolean =>
  (workspaceOfLetter(letter) ?? DEFAULT_WORKSPACE) === workspace;

const toView = (letter: StoredDeadLetter): Letters['messages'][number] => {
  const { sequence, consumer, subject, code, reason, deliveries, at } = letter;
  return { sequence, consumer, subject, eventId: eventIdOfLetter(letter), code, reason, deliveries, at };
};

/** Lists and replays dead letters. This service has the consumers of the log's events. */
@Controller()
export class DeadLetters {
  constructor(@Inject(NATS) private readonly link: NatsLink) {}

  @HandleRequest(listLetters)
  async list({ workspace, limit }: z.output<typeof listLetters.request>): Promise<Letters> {
    const messages: Letters['messages'] = [];
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

  @HandleRequest(replayLetter)
  async replay({
    workspace,
    sequence,
  }: z.output<typeof replayLetter.request>): Promise<z.input<typeof replayLetter.reply>> {
    const letter = await readDeadLetter(this.link, sequence);
    if (letter?.sequence !== sequence || !isOf(letter, workspace))
      throw notFound('LOG.LETTER_NOT_FOUND', `there is no dead letter ${sequence}`);
    if (workspaceOfLetter(letter) === undefined)
      throw rejected(
        'LOG.LETTER_OF_REQUEST',
        'the letter is a request without a reply. What to do: send it again with `antiphon dlq replay`',
      );
    await replayDeadLetter(this.link, letter);
    return { replayed: true };
  }
}
