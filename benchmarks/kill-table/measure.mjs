import { createDatabases, readSettings } from '../lib/databases.mjs';
import { describeMachine, versionsOf } from '../lib/machine.mjs';
import { watchOthers } from '../lib/others.mjs';
import { measureSubject } from './measure-subject.mjs';
import { ROW_NAMES, TITLES } from './rows.mjs';
import { startStubs } from './stubs.mjs';
import { startAntiphon } from './subjects/antiphon.mjs';
import { startDbos, startLangGraph, startRestate } from './subjects/peers.mjs';
import { summarizeSubject } from './summarize.mjs';

const PACKAGES = [
  '@dbos-inc/dbos-sdk',
  '@restatedev/restate-server',
  '@restatedev/restate-sdk',
  'langchain',
  '@langchain/langgraph',
  '@langchain/langgraph-checkpoint-postgres',
];

/** How the subject of each row starts. */
const STARTS = {
  'antiphon-agent': ({ antiphon }) => antiphon.subject('agent'),
  'antiphon-sandbox': ({ antiphon }) => antiphon.subject('sandbox'),
  dbos: ({ stubs, url }) => startDbos(stubs, url('dbos')),
  restate: ({ stubs }) => startRestate(stubs, 'service'),
  'restate-server': ({ stubs }) => startRestate(stubs, 'server'),
  langgraph: ({ stubs, url }) => startLangGraph(stubs, url('langgraph')),
  'langgraph-sync': ({ stubs, url }) => startLangGraph(stubs, url('langgraph-sync'), 'sync'),
};

const selectRows = (only) => {
  const unknown = only.find((wanted) => !ROW_NAMES.includes(wanted));
  if (unknown !== undefined)
    throw new Error(`there is no row "${unknown}"; the rows are: ${ROW_NAMES.join(', ')}`);
  return only.length === 0 ? ROW_NAMES : ROW_NAMES.filter((name) => only.includes(name));
};

const measureRow = async (name, context) => {
  const title = TITLES[name];
  const { stubs, seed, isQuick, log, watch, machine } = context;
  const { date, commit } = machine;
  const subject = await STARTS[name](context);
  try {
    watch.take();
    const measured = await measureSubject({ name, subject, stubs, seed, isQuick, log });
    const run = { date, commit, others: watch.take() ?? 0 };
    const row = { name, title, ...run, ...summarizeSubject(measured) };
    log(`${name}: ${row.repeated} repeated, ${row.unknown} unknown, ${row.neverResumed} never resumed`);
    return row;
  } finally {
    await subject.close();
  }
};

const versions = async (adminUrl) => ({
  ...versionsOf(PACKAGES),
  PostgreSQL: (await readSettings(adminUrl)).server_version,
});

/** Databases of the peers, on the server of the stack: the same engine and settings for all. */
const measureWithin = async (rows, { antiphon, ...context }) => {
  const adminUrl = antiphon.adminUrl();
  const databases = await createDatabases(adminUrl, ['dbos', 'langgraph', 'langgraph-sync']);
  const watch = watchOthers(() => [process.pid, ...antiphon.pids()]);
  const measured = [];
  try {
    for (const row of rows)
      measured.push(await measureRow(row, { ...context, antiphon, watch, url: databases.url }));
    return { versions: await versions(adminUrl), rows: measured };
  } finally {
    watch.close();
    await databases.drop();
  }
};

/** Stops everything on every exit, Ctrl-C included. */
export const measureKills = async ({ only, ...options }) => {
  const rows = selectRows(only);
  const stubs = await startStubs();
  options.log('starting a stack of its own …');
  const antiphon = await startAntiphon(stubs);
  const stop = () => void antiphon.stop().finally(() => process.exit(130));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    const machine = describeMachine();
    const { seed } = options;
    const measured = await measureWithin(rows, { ...options, stubs, antiphon, machine });
    const { date: _date, commit: _commit, ...lasting } = machine;
    return { machine: lasting, seed, processes: antiphon.processes(), ...measured };
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
    await antiphon.stop();
    stubs.close();
  }
};
