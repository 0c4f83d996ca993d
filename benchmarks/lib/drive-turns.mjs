/**
 * Runs turns in lanes, one lane after another's end never waiting: `sessions` lanes side by side,
 * each a row of sessions of `turnsPerSession` turns. Returns milliseconds a turn, whether it was
 * the first of its session, the whole time, and the processor time of this process.
 */
export const driveTurns = async (turn, { tag, tools, turns, sessions, turnsPerSession = 10 }) => {
  const latencies = [];
  const firsts = [];
  const cpu = process.cpuUsage();
  const began = performance.now();
  const lane = async (laneNumber) => {
    for (let i = 0; i < turns; i += 1) {
      const session = `${tag}-${laneNumber}-${Math.floor(i / turnsPerSession)}`;
      const from = performance.now();
      const number = i % turnsPerSession;
      await turn({ session, number, content: `turn ${number} TOOLS=${tools}`, tools });
      latencies.push(performance.now() - from);
      firsts.push(number === 0);
    }
  };
  await Promise.all(Array.from({ length: sessions }, (_, laneNumber) => lane(laneNumber)));
  const ms = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  return { latencies, firsts, ms, cpuMs: (user + system) / 1_000 };
};
