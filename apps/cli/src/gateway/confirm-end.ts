import type { AgentView } from '@antiphon/contracts/agent';
import { invalid } from '@antiphon/kernel';

const readAnswer = async (question: string): Promise<string> => {
  const { createInterface } = await import('node:readline/promises');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await terminal.question(question);
  } finally {
    terminal.close();
  }
};

/** Returns a function that asks the person at the terminal; null without a terminal. */
export const askAtTerminal = (): ((question: string) => Promise<string>) | null =>
  process.stdin.isTTY ? readAnswer : null;

/**
 * Asks before the end of an agent of the configuration, which no restart brings back. Throws
 * `CLI.USAGE` without a consent.
 */
export const confirmEnd = async (
  { id, origin, state }: Pick<AgentView, 'id' | 'origin' | 'state'>,
  ask: ((question: string) => Promise<string>) | null,
): Promise<void> => {
  if (origin !== 'configuration' || state === 'terminated') return;
  const effect = `agent "${id}" is in the configuration and stays terminated: its id is never used again`;
  if (!ask) throw invalid('CLI.USAGE', `${effect}. What to do: repeat the command with --yes, or pause it`);
  const answer = await ask(`${effect}. Terminate it? [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw invalid('CLI.USAGE', 'not terminated');
};
