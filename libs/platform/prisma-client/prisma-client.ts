import { PrismaPg } from '@prisma/adapter-pg';
import type pg from 'pg';
import { PrismaClient, type Prisma } from './generated/client.js';
import { translatePrismaError } from './prisma-error.js';

/** Operational tables within one transaction. Other tables of the schema use `pg`. */
export type OperationalTables = Pick<Prisma.TransactionClient, 'apiKey' | 'providerCredential' | 'workspace'>;

/** Prisma Client of this process. */
export type OperationalClient = PrismaClient;

const TRANSACTION = { maxWait: 5_000, timeout: 5_000 } as const;

/**
 * Creates Prisma Client on the connections of a pool, with its role and timeouts. Prisma's engine
 * is WebAssembly and loads at the first statement. The pool's owner closes the pool.
 */
export const createPrismaClient = (pool: pg.Pool): OperationalClient =>
  new PrismaClient({ adapter: new PrismaPg(pool), errorFormat: 'minimal' });

/**
 * Runs `work` in one transaction that may see the rows of one workspace only. Row-level security
 * compares each row with the setting, so a statement without a filter returns no other rows.
 * Rejects with an AppError for an error of the database.
 */
export const inWorkspace = async <T>(
  prisma: OperationalClient,
  workspace: string,
  work: (tables: OperationalTables) => Promise<T>,
): Promise<T> => {
  try {
    return await prisma.$transaction(async (tables) => {
      await tables.$executeRaw`select set_config('antiphon.workspace', ${workspace}, true)`;
      return work(tables);
    }, TRANSACTION);
  } catch (error) {
    throw translatePrismaError(error);
  }
};
