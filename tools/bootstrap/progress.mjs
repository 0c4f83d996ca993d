const QUIET_MS = 2_000;
const REPEAT_MS = 10_000;

const seconds = (ms) => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;

/**
 * Creates a reporter of slow steps. A step that takes longer than 2 s is announced, repeated every
 * 10 s and reported when done; shorter ones print nothing. Steps may run in parallel.
 * @type {import('./types.js').CreateProgress}
 */
export const createProgress = (write) => ({
  note: (line) => write(`  ${line}`),
  step: async (label, work) => {
    const startedAt = Date.now();
    let detail = '';
    let isAnnounced = false;
    const announce = () => {
      isAnnounced = true;
      const elapsed = Date.now() - startedAt;
      const time = elapsed < REPEAT_MS ? '' : ` (${seconds(elapsed)})`;
      write(`  ${label} …${detail === '' ? '' : ` ${detail}`}${time}`);
    };
    let repeat;
    const first = setTimeout(() => {
      announce();
      repeat = setInterval(announce, REPEAT_MS);
    }, QUIET_MS);
    try {
      const result = await work((text) => (detail = text));
      if (isAnnounced) write(`  ${label}: done in ${seconds(Date.now() - startedAt)}`);
      return result;
    } finally {
      clearTimeout(first);
      clearInterval(repeat);
    }
  },
});
