const FIRST_LETTER = /\p{L}/u;
/** Scripts that are written from right to left (Unicode, bidirectional classes R and AL). */
const RIGHT_TO_LEFT =
  /\p{Script=Hebrew}|\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Thaana}|\p{Script=Nko}|\p{Script=Samaritan}|\p{Script=Mandaic}|\p{Script=Adlam}/u;

/**
 * Returns the direction of a block of text: that of its first letter. `dir="auto"` would not do, as
 * it skips the isolated texts of which a block consists.
 */
export const directionOf = (text: string): 'ltr' | 'rtl' => {
  const [letter = ''] = FIRST_LETTER.exec(text) ?? [];
  return RIGHT_TO_LEFT.test(letter) ? 'rtl' : 'ltr';
};
