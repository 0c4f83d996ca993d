const QUIET_MS = 2_000;
const REPEAT_MS = 10_000;

const seconds = (ms) => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;

/**
 * Tells of every step that takes longer than 2 s: when it passes them, every 10 s after that, and when it is done.
 * Shorter steps stay silent. Steps may run side by side.
 * @param {(line: string) => void} write
 */
export const createProgress = (write) => {
  const step = async (label, work) => {
    const began = Date.now();
    let detail = '';
    let announced = false;
    const tell = () => {
      announced = true;
      const elapsed = Date.now() - began;
      write(
        `  ${label} …${detail === '' ? '' : ` ${detail}`}${elapsed < REPEAT_MS ? '' : ` (${seconds(elapsed)})`}`,
      );
    };
    let repeat;
    const first = setTimeout(() => {
      tell();
      repeat = setInterval(tell, REPEAT_MS);
    }, QUIET_MS);
    try {
      const result = await work((text) => (detail = text));
      if (announced) write(`  ${label}: done in ${seconds(Date.now() - began)}`);
      return result;
    } finally {
      clearTimeout(first);
      clearInterval(repeat);
    }
  };
  return { step, note: (line) => write(`  ${line}`) };
};
