import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';

/** Runs a named statement in the transaction of a projection, and returns its rows. */
type NamedQuery = <Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  name: string,
  text: string,
  values: unknown[],
) => Promise<Row[]>;

/** Creates a runner of named statements. Their names begin with that of the projection. */
export const createNamedQuery =
  (projection: string): NamedQuery =>
  async <Row extends pg.QueryResultRow>(
    client: pg.ClientBase,
    name: string,
    text: string,
    values: unknown[],
  ): Promise<Row[]> => {
    try {
      return (await client.query<Row>({ name: `${projection}_${name}`, text, values })).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  };
