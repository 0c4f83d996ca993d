import { invalid } from '@antiphon/kernel';
import { printTurn } from '../gateway/chat.command.js';
import { Detachment } from '../gateway/detach.js';
import type { CommandContext } from '../output.js';

export interface ResumeOptions {
  readonly after: string;
}

/** Prints the frames of a session after an offset, until a turn ends or the user detaches. */
export const resumeSession = async (
  { output, gateway }: CommandContext,
  sessionId: string,
  { after: text }: ResumeOptions,
): Promise<void> => {
  const after = Number(text);
  if (!Number.isSafeInteger(after) || after < 0)
    throw invalid('CLI.USAGE', `--after ${text}: an offset is a whole number from 0`);
  const request = { method: 'session.resume', params: { sessionId, after } } as const;
  await printTurn(output, await gateway(), request, new Detachment(output, { sessionId, after }));
};
