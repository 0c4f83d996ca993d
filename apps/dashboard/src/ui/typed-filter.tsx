import { useEffect, useRef, useState } from 'react';
import { setParams } from '../data/router.js';

const TYPING_MS = 350;

interface TypedFilterProps {
  /** Parameter of the URL. */
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly hint?: string | undefined;
}

/**
 * A filter that a person types. The URL gets it after a pause, so that not every letter is read.
 * Back returns to the filter before the field had the focus.
 */
export const TypedFilter = ({ name, label, value, hint = 'any' }: TypedFilterProps) => {
  const [text, setText] = useState(value);
  /** True once this visit of the field has an entry in the history. */
  const isEntered = useRef(false);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => {
      setParams({ [name]: text.trim() }, { replace: isEntered.current });
      isEntered.current = true;
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [name, text, value]);
  return (
    <label>
      {label}
      <input
        type="search"
        value={text}
        placeholder={hint}
        onFocus={() => (isEntered.current = false)}
        onChange={(event) => setText(event.target.value)}
      />
    </label>
  );
};
