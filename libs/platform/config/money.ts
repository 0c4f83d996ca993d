import { TomlFloat } from './toml-value.js';

const DECIMAL = /^\+?(\d{1,12})(?:\.(\d{1,40}))?$/;
/** Beyond this, sums of many amounts would leave the exact integers. */
const MAX_USD = 1_000_000_000;

/**
 * US dollars as written → integer micro-dollars, digit by digit (no binary fractions).
 * Null for what is no amount: negative, over a billion, not finite, an exponent, or finer than a micro-dollar.
 */
export const usdToMicro = (value: unknown): number | null => {
  if (typeof value === 'number')
    return Number.isInteger(value) && value >= 0 && value <= MAX_USD ? value * 1e6 : null;
  if (!(value instanceof TomlFloat)) return null;
  const match = DECIMAL.exec(value.text.replaceAll('_', ''));
  const fraction = match?.[2] ?? '';
  if (match === null || /[1-9]/.test(fraction.slice(6))) return null;
  const micro = Number(match[1]) * 1e6 + Number(fraction.slice(0, 6).padEnd(6, '0'));
  return micro <= MAX_USD * 1e6 ? micro : null;
};
