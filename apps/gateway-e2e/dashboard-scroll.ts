// Expressions that a browser evaluates on the page of a session.

const SCROLLER = `(() => { let found = document.querySelector('[data-turn]');
  while (found && !(found.scrollHeight > found.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(found).overflowY)))
    found = found.parentElement;
  return found ?? document.scrollingElement; })()`;
/** How far the page is scrolled. */
export const SCROLL_TOP = `${SCROLLER}.scrollTop`;
/** How far the page is from its end. */
export const DISTANCE_TO_END = `(() => { const box = ${SCROLLER}; return box.scrollHeight - box.scrollTop - box.clientHeight; })()`;
/** Selects a paragraph of the answer that is in view. Returns its text. */
export const SELECT_IN_VIEW = `(() => {
  const inView = [...document.querySelectorAll('[data-turn] p')].find((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top > 150 && bottom < innerHeight - 150 && element.textContent.includes('word');
  });
  getSelection().selectAllChildren(inView);
  return getSelection().toString();
})()`;
