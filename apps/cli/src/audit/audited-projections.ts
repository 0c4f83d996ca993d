import type { ProjectionAudit } from '@antiphon/audit-features';
import { compareProjection } from '@antiphon/event-store';
import type { ProjectionComparison, RowDifference } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import type pg from 'pg';
import { allProjections } from '../projections/all-projections.js';

const describe = ({ table, key, kind, columns }: RowDifference): string => {
  const row = `${table} ${JSON.stringify(key)}`;
  if (kind === 'missing') return `the log makes a row that is not there: ${row}`;
  if (kind === 'extra') return `the log makes no such row: ${row}`;
  return `the log makes another ${columns.join(', ')}: ${row}`;
};

const differencesOf = ({ differing, first }: ProjectionComparison): readonly string[] => [
  ...first.map(describe),
  ...Array.from({ length: differing - first.length }, () => 'one more row differs'),
];

/** Only half of the log can be read: the audit says so by itself, and about its files. */
const isIncomplete = (error: unknown): boolean =>
  isAppError(error) && (error.code === 'LOG.ARCHIVED' || error.code === 'LOG.ARCHIVE_DAMAGED');

/** Every projection, held against the fold of the log, with what has left it to files, on the audit's snapshot. */
export const auditedProjections = (pool: pg.Pool, archives: string): readonly ProjectionAudit[] =>
  allProjections.map((definition) => ({
    name: definition.name,
    compare: async (client) => {
      // The audit's own connection rests meanwhile.
      await client.query('set local idle_in_transaction_session_timeout = 0');
      const { rows } = await client.query<{ snapshot: string }>('select pg_export_snapshot() as snapshot');
      const snapshot = rows[0]?.snapshot ?? '';
      try {
        const compared = await compareProjection(pool, definition, { snapshot, archives });
        return { rows: compared.rows, differences: differencesOf(compared) };
      } catch (error) {
        if (isIncomplete(error)) return { rows: 0, differences: [] };
        throw error;
      }
    },
  }));
