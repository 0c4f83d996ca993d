/** Rows of the table, in order: what runs the turn, and which process is killed. */
export const TITLES = {
  'antiphon-agent': 'Antiphon, agent killed',
  'antiphon-sandbox': 'Antiphon, sandbox killed',
  dbos: 'DBOS',
  restate: 'Restate, service killed',
  'restate-server': 'Restate, server killed',
  langgraph: 'LangGraph',
  'langgraph-sync': 'LangGraph, durability sync',
};
export const ROW_NAMES = Object.keys(TITLES);
