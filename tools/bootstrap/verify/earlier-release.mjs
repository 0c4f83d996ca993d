import { join } from 'node:path';

/** Last commit before the agent service was split into contexts, and events took causes. */
const RELEASE = '8cefa2a3';
const MESSAGES = [
  'my name is Ada',
  '/tool calculator {"expression":"19+23"}',
  // Its failure was stored as a text then, and is a cause today.
  '/tool calculator {"expression":"1/"}',
  '/tool no-such-tool {}',
  'what is my name?',
];
const AGAIN = 'and now?';

const lastLines = (output) => output.trim().split('\n').slice(-25).join('\n');

/**
 * Fills a home by an earlier release, and opens it by this one. The audit holds, each turn reads as
 * it did, and each decision repeats to the stored hashes. Then the session continues.
 */
export const openEarlierHome = async ({ folder, clone, npm, run }) => {
  const [earlier, current] = [await clone('earlier'), await clone('fresh')];
  const checkout = await run('git', ['checkout', '--quiet', RELEASE], { cwd: earlier, env: process.env });
  if (checkout.code !== 0) return { skipped: `the clone has no commit ${RELEASE}` };
  const env = { ANTIPHON_HOME: join(folder, 'earlier-home') };
  const succeed = async (cwd, ...args) => {
    const { code, output } = await npm(cwd, args, { env });
    if (code !== 0) throw new Error(`npm ${args.join(' ')}: exit code ${code}\n${lastLines(output)}`);
    return output;
  };
  const antiphon = (cwd, ...args) => succeed(cwd, 'exec', '--', 'antiphon', ...args);
  const readSession = async (cwd, id) => {
    const { turns } = JSON.parse(await antiphon(cwd, 'session', 'show', id, '--json'));
    return turns.map(({ status, message, items }) => [
      status,
      message.text,
      items.map(({ kind, name, status: end, text }) => [kind, name, end, text]),
    ]);
  };
  const stop = (cwd) => succeed(cwd, 'stop');

  await succeed(earlier, 'start', '--', '--detach');
  for (const message of MESSAGES) await antiphon(earlier, 'chat', message);
  const { sessions } = JSON.parse(await antiphon(earlier, 'session', 'list', '--json'));
  const [{ id }] = sessions;
  const before = await readSession(earlier, id);
  if (before.length !== MESSAGES.length) throw new Error(`${before.length} turns were written`);
  await stop(earlier);

  await succeed(current, 'start', '--', '--detach');
  try {
    const after = await readSession(current, id);
    if (JSON.stringify(after) !== JSON.stringify(before))
      throw new Error(`the turns read differently:\n${JSON.stringify(before)}\n${JSON.stringify(after)}`);
    await antiphon(current, 'audit');
    await antiphon(current, 'session', 'replay', id, '--strict');
    await antiphon(current, 'chat', AGAIN);
    if ((await readSession(current, id)).length !== MESSAGES.length + 1)
      throw new Error('the session did not continue');
    await antiphon(current, 'audit');
    await antiphon(current, 'session', 'replay', id, '--strict');
  } finally {
    await stop(current);
  }
  return { note: `${before.length} turns of ${RELEASE} read, audited, replayed and continued` };
};
