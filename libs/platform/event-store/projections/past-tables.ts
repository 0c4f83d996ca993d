import pg from 'pg';
import type { ProjectionDefinition, ProjectionTable } from './projection-definition.js';
import { createShadowsSql } from './rebuild/shadow-tables.js';

/** Setting of a connection: the position of its reads. */
export const PAST_POSITION = 'antiphon.past_position';

/**
 * Returns SQL of a temporary view that hides a table whose rows are only inserted. It has the live
 * rows up to the position of the reads. Rows that a fold inserts into it are dropped.
 */
const createViewSql = ({ name, positionColumn = '' }: ProjectionTable): string => {
  const table = pg.escapeIdentifier(name);
  return `create temp view ${table} as select * from public.${table}
      where ${pg.escapeIdentifier(positionColumn)} <= coalesce(current_setting('${PAST_POSITION}', true)::bigint, 0);
    create rule no_insert as on insert to pg_temp.${table} do instead nothing`;
};

/**
 * Returns SQL that creates the tables of reads of the past. Temporary tables come first in the
 * search path, so that statements of handlers and of live reads find them under the live names.
 */
export const createPastTablesSql = (
  definitions: readonly ProjectionDefinition[],
  emptyTables: readonly string[],
): string => {
  const tables = definitions.flatMap((definition) => definition.tables);
  const folded = tables.filter(({ positionColumn }) => positionColumn === undefined);
  const inserted = tables.filter(({ positionColumn }) => positionColumn !== undefined);
  const empty = emptyTables.map((name) => {
    const table = pg.escapeIdentifier(name);
    return `create temp table ${table} (like public.${table} including all)`;
  });
  return [createShadowsSql({ tables: folded }), ...inserted.map(createViewSql), ...empty].join('; ');
};
