const set = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/));

/** First words of a question. */
export const QUESTION_STARTS = set(
  'is are was were do does did can could would will should what who whom where when why how which whose has have had',
);
export const NEGATIONS: ReadonlySet<string> = new Set([
  ...set(
    "not never no don't dont doesn't doesnt didn't didnt isn't isnt wasn't wasnt won't can't cannot neither nor",
  ),
  'nobody',
]);
/** Words before a supposition or a condition. */
export const HYPOTHETICALS = set(
  'if whether unless suppose supposing pretend imagine assume assuming wish wonder until when unlike hope',
);
/** Words before a report; it counts only as the speaker's own (`I told you my name is Ada`). */
export const REPORTS = set(
  'say says said saying tell tells told telling claim claims claimed ask asks asked write writes wrote',
);
export const SPEAKER = set("i i'm i've i'd i'll im ive");
export const PASSIVES = set('was were am been being');
/** Words of an uncertain speaker. */
export const HEDGES = set('think believe guess maybe probably perhaps likely');

/** Words that end an object. */
export const CLAUSE_WORDS = set('but because which who whom while though although whereas unless until');
/** Words that end the place in `I live in …`. */
export const PLACE_ENDS = set('with since for where when right now currently as and');
/**
 * Words that start a clause after `and` or a comma; others continue (`blue and green`, `Paris,
 * France`).
 */
export const CLAUSE_STARTS = set(
  `i i'm i've i'd i'll im we you he she it they this that there here my your our his her their please can could would what
   when where who how why which do does did is are so and but or let let's thanks thank also then not nice hi hello hey just
   tell remember right ok okay`,
);
/** Words that no noun of `my X is Y` contains. */
export const NOT_IN_PREDICATE = set(
  `and but or so i you he she it we they me him us them my your his our their this that these those who which what because if
   when where was were has have had do does did will would can could should not to the a an from with on about by am be been`,
);
/** Nouns of `my X is Y` about the conversation instead of the speaker. */
export const TALK_NOUNS = set(
  'question questions point guess understanding answer bad take request concern problem issue thought thoughts opinion worry',
);
/** First words of a clause instead of a value: `my goal is that …`, `my rule is when …`. */
export const CLAUSE_OBJECTS = set('that when how why what whether if because where who which so too such');
export const FILLERS_BEFORE = set(
  'actually really now just currently still also called named definitely simply',
);
export const FILLERS_AFTER = set(
  'too now right btw please thanks though actually again anyway currently ok okay',
);
/** Adjectives ignored in a predicate: `my new address is …` is about the address. */
export const PASSING_ADJECTIVES = set('new current own actual present');
export const LIVE_ADVERBS = set('now currently still actually also mostly really just');

const SPELLINGS: Readonly<Record<string, string>> = {
  favourite: 'favorite',
  colour: 'color',
  colours: 'colors',
};
/** Normalises spelling variants, so that a fact supersedes one in the other spelling. */
export const spell = (word: string): string => SPELLINGS[word] ?? word;
/** Words before `my` after which no subject follows: `in my view`, `for my customers`. */
export const PREPOSITIONS = set(
  'in for of with on at from to about by under over into onto like near between among through against without around behind per via',
);
