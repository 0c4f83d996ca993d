import { createStore } from '../data/store.js';

const NAME = 'antiphon.spoken-answers';

/** False announces no answers, for people whose screen reader reads the page itself. */
export const speaksAnswers = createStore(localStorage.getItem(NAME) !== 'off');
export const setSpeaksAnswers = (isOn: boolean): void => {
  localStorage.setItem(NAME, isOn ? 'on' : 'off');
  speaksAnswers.set(isOn);
};
