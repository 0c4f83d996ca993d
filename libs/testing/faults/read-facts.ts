import { createPool } from '@antiphon/database';
import { createLogReader } from '@antiphon/event-store';
import { silentLogger } from '@antiphon/observability';
import type { TestStack } from '../engines/start-stack.js';
import type { LoggedFact } from '../load/check-commands.js';

const PAGE = 5_000;
/** Runs, and what clients are shown. */
const CATEGORIES = ['session', 'run'];

/** The facts of a stack's log that say what became of commands, oldest first. */
export const readFacts = async ({ databaseUrl }: Pick<TestStack, 'databaseUrl'>): Promise<LoggedFact[]> => {
  const pool = createPool({ url: databaseUrl, applicationName: 'antiphon-check', logger: silentLogger });
  const log = createLogReader(pool);
  const facts: LoggedFact[] = [];
  try {
    for (let after = 0; ;) {
      const page = await log.readLog({ after, limit: PAGE, categories: CATEGORIES });
      facts.push(...page.map(({ streamId, type, data }) => ({ streamId, type, data })));
      if (page.length < PAGE) return facts;
      after = page.at(-1)?.position ?? after;
    }
  } finally {
    await pool.end();
  }
};
