import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { VisibleText } from '../ui/visible-text.js';
import css from './shell.module.css';

const SHOW_MS = 350;
/** Time to move the pointer from an element to its tip. */
const HIDE_MS = 250;
const GAP_PX = 6;

interface Shown {
  readonly text: string;
  readonly anchor: HTMLElement;
}

/** Keys that move the focus. A focus that a page moves by itself shows no tip. */
const MOVES_FOCUS = /^(Tab|Arrow|Home|End|Page)/;

const anchorOf = (target: EventTarget | null): HTMLElement | null =>
  target instanceof Element ? target.closest<HTMLElement>('[data-tip]') : null;

/** Places the tip below its element, or above it at the end of the window. */
const place = (box: HTMLElement, anchor: HTMLElement): void => {
  const at = anchor.getBoundingClientRect();
  const { width, height } = box.getBoundingClientRect();
  const below = at.bottom + GAP_PX;
  box.style.left = `${Math.max(GAP_PX, Math.min(at.left, innerWidth - width - GAP_PX))}px`;
  box.style.top = `${below + height > innerHeight ? at.top - height - GAP_PX : below}px`;
};

const useShownTip = (box: React.RefObject<HTMLDivElement | null>): Shown | null => {
  const [shown, show] = useState<Shown | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isMovedByKey = false;
    const soon = (next: Shown | null, ms: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => show(next), ms);
    };
    const shownFor = (anchor: HTMLElement): Shown => ({ text: anchor.dataset['tip'] ?? '', anchor });
    const onOver = ({ target }: PointerEvent): void => {
      if (target instanceof Node && box.current?.contains(target)) return clearTimeout(timer);
      const anchor = anchorOf(target);
      soon(anchor && shownFor(anchor), anchor ? SHOW_MS : HIDE_MS);
    };
    const onFocus = ({ target }: FocusEvent): void => {
      const anchor = anchorOf(target);
      if (isMovedByKey && anchor?.matches(':focus-visible')) soon(shownFor(anchor), 0);
      else soon(null, 0);
    };
    const onKey = (event: KeyboardEvent): void => {
      clearTimeout(timer);
      isMovedByKey = MOVES_FOCUS.test(event.key);
      // Escape closes one layer: with a tip on the screen only the tip.
      if (event.key !== 'Escape' || !box.current) return;
      event.preventDefault();
      event.stopPropagation();
      show(null);
    };
    document.addEventListener('pointerover', onOver);
    document.addEventListener('focusin', onFocus);
    document.addEventListener('keydown', onKey, true);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('pointerover', onOver);
      document.removeEventListener('focusin', onFocus);
      document.removeEventListener('keydown', onKey, true);
    };
  }, [box]);
  return shown;
};

/**
 * Shows the text of `data-tip` for the element that the pointer or the focus is on. The tip stays
 * while the pointer is on it, and Escape closes it.
 */
export const Tips = () => {
  const box = useRef<HTMLDivElement>(null);
  const shown = useShownTip(box);
  useLayoutEffect(() => {
    if (!box.current || !shown) return;
    box.current.showPopover();
    place(box.current, shown.anchor);
  }, [shown]);
  if (!shown?.anchor.isConnected) return null;
  return (
    <div ref={box} popover="manual" role="tooltip" className={css.tip}>
      <VisibleText text={shown.text} />
    </div>
  );
};
