/** Functions that both checks of a layout use in the page. */
const HELPERS = `
  const isShown = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  // A text for screen readers is a pixel wide.
  const isForReaders = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const style = getComputedStyle(each);
      if (style.clipPath !== 'none' && each.clientWidth <= 1) return true;
    }
    return false;
  };
  const modal = document.querySelector('dialog[open]');
  const isCovered = (element) => modal !== null && !modal.contains(element);
  const nameOf = (element) => element.tagName.toLowerCase() + '.' + String(element.className.baseVal ?? element.className).slice(0, 40);
`;

/**
 * Finds texts that an ancestor cuts off, in the page. A text is not lost if an ancestor scrolls, or
 * if a tip has all of it. Details have the whole text of their summary. A card of a graph has a
 * fixed size: its inspector and the table have its texts.
 */
export const FIND_CUT_TEXTS = `(() => {
  ${HELPERS}
  const hasOtherPlace = (element, text) => {
    const tip = element.closest('[data-tip]')?.dataset.tip ?? '';
    // The name of a hidden character.
    if (tip !== '' && /^U\\+[0-9A-F]{4,6}$/.test(text)) return true;
    if (tip.replaceAll(/\\s+/g, ' ').includes(text.replaceAll(/\\s+/g, ' ').trim())) return true;
    return element.closest('summary, .react-flow, [aria-hidden=true]') !== null;
  };
  const cutBy = (element, rect) => {
    for (let each = element; each && each !== document.body; each = each.parentElement) {
      const { overflowX, overflowY, position } = getComputedStyle(each);
      if (/auto|scroll/.test(overflowX + overflowY)) return null;
      const box = each.getBoundingClientRect();
      const isX = /hidden|clip/.test(overflowX) && (rect.right > box.right + 1.5 || rect.left < box.left - 1.5);
      const isY = /hidden|clip/.test(overflowY) && (rect.bottom > box.bottom + 4 || rect.top < box.top - 4);
      if (isX || isY) return each;
      if (position === 'fixed') return null;
    }
    return null;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data;
    const element = node.parentElement;
    if (text.trim() === '' || !element || /^(SCRIPT|STYLE|OPTION|TEXTAREA)$/.test(element.tagName)) continue;
    if (!isShown(element) || isForReaders(element) || isCovered(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const by = cutBy(element, rect);
      if (!by || hasOtherPlace(element, text)) continue;
      found.push('cut: ' + text.trim().slice(0, 60) + ' in ' + nameOf(element) + ' by ' + nameOf(by));
      break;
    }
  }
  return [...new Set(found)];
})()`;

/** Finds pairs of controls that lie over each other, in the page. */
export const FIND_OVERLAPS = `(() => {
  ${HELPERS}
  const SELECTOR = 'button, a[href], input, select, textarea, summary';
  const isApart = (element) => element.closest('.react-flow, [popover], [role=log]') !== null;
  /** Returns the part of a rectangle that its scrolling ancestors show. */
  const seenPart = (element, rect) => {
    let { left, right, top, bottom } = rect;
    for (let each = element.parentElement; each; each = each.parentElement) {
      if (getComputedStyle(each).overflow === 'visible') continue;
      const box = each.getBoundingClientRect();
      [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
    }
    return { left, right, top, bottom };
  };
  const isStuck = (element) => {
    for (let each = element; each; each = each.parentElement)
      if (/fixed|sticky/.test(getComputedStyle(each).position)) return true;
    return false;
  };
  const boxes = [...document.querySelectorAll(SELECTOR)]
    .filter((element) => isShown(element) && !isForReaders(element) && !isCovered(element) && !isApart(element))
    .flatMap((element) => [...element.getClientRects()].map((rect) => ({
      element, stuck: isStuck(element), ...seenPart(element, rect),
    })))
    .filter(({ left, right, top, bottom }) => right - left > 2 && bottom - top > 2 && right > 0 && bottom > 0)
    .sort((a, b) => a.top - b.top);
  const found = [];
  boxes.forEach((one, index) => {
    for (const other of boxes.slice(index + 1)) {
      if (other.top >= one.bottom) break;
      // A bar that stays in view covers what scrolls below it.
      if (one.stuck !== other.stuck) continue;
      if (one.element === other.element || one.element.contains(other.element) || other.element.contains(one.element)) continue;
      const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const height = Math.min(one.bottom, other.bottom) - other.top;
      if (width <= 2 || height <= 2) continue;
      const label = ({ element }) => nameOf(element) + ' ' + (element.ariaLabel ?? element.textContent).trim().slice(0, 30);
      found.push('over each other by ' + Math.round(width) + ' × ' + Math.round(height) + ' px: ' + label(one) + ' | ' + label(other));
    }
  });
  return [...new Set(found)];
})()`;
