import { createStore } from '../data/store.js';

const WHOLE = 'antiphon.whole-values';

/** True shows exact times and whole ids in place of short ones. */
export const showsWhole = createStore(localStorage.getItem(WHOLE) === 'on');
export const setShowsWhole = (isOn: boolean): void => {
  localStorage.setItem(WHOLE, isOn ? 'on' : 'off');
  showsWhole.set(isOn);
};
