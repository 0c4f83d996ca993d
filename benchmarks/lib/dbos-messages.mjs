// The history of a session in a table of the application, as an application on DBOS keeps it.
const TABLE = `create table if not exists messages (session text, turn integer, position integer,
  message jsonb not null, primary key (session, turn, position))`;
const LOAD = 'select message from messages where session = $1 order by turn, position';
/** A repeat of the step changes nothing. */
const SAVE = `insert into messages select $1, $2, n, message
  from jsonb_array_elements($3::jsonb) with ordinality as given (message, n) on conflict do nothing`;

export const createMessages = async (pool) => {
  await pool.query(TABLE);
  return {
    load: async (session) => {
      const { rows } = await pool.query({ name: 'load', text: LOAD, values: [session] });
      return rows.map(({ message }) => message);
    },
    save: (session, turn, messages) =>
      pool.query({ name: 'save', text: SAVE, values: [session, turn, JSON.stringify(messages)] }),
  };
};
