import { usePosition } from '../data/router.js';
import { css } from './ui.js';

/** Marks a part that has no past, on a page of the past. It shows nothing in the present. */
export const PresentMark = () =>
  usePosition() === null ? null : (
    <span className={css.ofNow} data-of-now="">
      current<span className="visually-hidden">, not of the position of the page</span>
    </span>
  );
