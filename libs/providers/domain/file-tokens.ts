import type { MediaFacts } from '@antiphon/contracts/agent';
import type { ModelFile } from './model-port.js';

/** Rules by which a vendor counts the tokens of an image of these pixels. */
type ImageRule = (width: number, height: number) => number;

const areas = (width: number, height: number, side: number): number =>
  Math.ceil(width / side) * Math.ceil(height / side);

/** Pixels of a token, as Anthropic documents them and as estimates count. */
const PIXELS_PER_TOKEN = 750;

/**
 * Patches of 28 pixels. A larger image is scaled down: to 2,576 pixels and 4,784 patches since
 * Opus 4.7, and to 1,568 pixels and about 1,600 before. A scaled image has a row and a column more
 * at most. https://platform.claude.com/docs/en/build-with-claude/vision
 */
const anthropic =
  (most: number): ImageRule =>
  (width, height) =>
    Math.min(Math.max(areas(width, height, 28), Math.ceil((width * height) / PIXELS_PER_TOKEN)), most);

const ANTHROPIC_NOW = anthropic(4_784 + 184);
const ANTHROPIC_BEFORE = anthropic(1_600 + 112);

/**
 * Tiles of 512 pixels, after the image is scaled into 2,048 pixels, and its short side to 768.
 * https://developers.openai.com/api/docs/guides/images-vision
 */
const tiles =
  (base: number, tile: number): ImageRule =>
  (width, height) => {
    const fit = Math.min(1, 2_048 / Math.max(width, height));
    const scale = fit * Math.min(1, 768 / (Math.min(width, height) * fit));
    return base + tile * areas(Math.ceil(width * scale), Math.ceil(height * scale), 512);
  };

/** Patches of 32 pixels, at most so many, each a number of tokens. */
const patches =
  (most: number, tokens: number): ImageRule =>
  (width, height) =>
    Math.ceil(Math.min(areas(width, height, 32), most) * tokens);

/**
 * 258 tokens for each square of at most 768 pixels, which is smaller for a small image. Newer
 * models take a number by resolution, at most 2,240.
 * https://ai.google.dev/gemini-api/docs/image-understanding
 */
const gemini: ImageRule = (width, height) => {
  const side = Math.max(256, Math.min(768, Math.floor(Math.min(width, height) / 1.5)));
  return Math.max(2_240, 258 * areas(width, height, side));
};

const atMost =
  (...rules: readonly ImageRule[]): ImageRule =>
  (width, height) =>
    Math.max(...rules.map((rule) => rule(width, height)));

/** For a model whose rule is not known. Local models take patches of 28 pixels, at most 16,384. */
const UNKNOWN = atMost(tiles(85, 170), gemini, anthropic(16_384));
const MAX_MULTIPLIER = 2.46;

/** The first row that matches the name of a model, without the vendor before it. */
const RULES: readonly (readonly [RegExp, ImageRule])[] = [
  [/claude-(?:[a-z]+-)?(?:[5-9]|\d\d|4[-.][7-9])|claude-(?:preview|latest)/, ANTHROPIC_NOW],
  [/claude/, ANTHROPIC_BEFORE],
  [/^gpt-4o-mini/, tiles(2_833, 5_667)],
  [/^(?:gpt-4\.1|gpt-[5-9][\d.]*|o4)-(?:mini|nano)/, patches(1_536, MAX_MULTIPLIER)],
  [/^(?:gpt-4|chatgpt-4|o[13])/, tiles(85, 170)],
  // Newer models take up to 10,000 patches.
  [/^gpt-5(?:-|$)/, atMost(tiles(85, 170), patches(1_536, 1.2))],
  [/^gpt-/, patches(10_000, 1.2)],
  [/^gemini/, gemini],
];

/** Page of a document as an image: vendors render it with at most so many pixels. */
const PAGE = { width: 1_568, height: 2_048 };
/** Tokens that a vendor adds around a file. */
const OVERHEAD = 64;
/** Tokens of a document whose pages are not known. */
const UNKNOWN_PAGES = 100;

const shortName = (model: string): string => model.slice(model.lastIndexOf('/') + 1).toLowerCase();

/**
 * Returns an upper bound of the tokens of an image or a document, by the documented rule of the
 * model's vendor. Vendors read a document as the image of each page, and its text.
 */
export const fileBound = (media: MediaFacts, model: string): number => {
  const rule = RULES.find(([family]) => family.test(shortName(model)))?.[1] ?? UNKNOWN;
  if (media.mediaType !== 'application/pdf')
    return OVERHEAD + rule(media.width ?? 8_000, media.height ?? 8_000);
  const { pages = UNKNOWN_PAGES, textBytes = 0 } = media;
  return OVERHEAD + pages * (rule(PAGE.width, PAGE.height) + OVERHEAD) + textBytes;
};

/** Returns the bounds of all files of a request, without the bytes of their base64. */
export const boundOfFiles = (files: readonly ModelFile[], model: string): number =>
  files.reduce((sum, { media, data }) => sum + fileBound(media, model) - data.length, 0);

/** Tokens of a page in estimates: an image, and its text. */
const PAGE_TOKENS = 2_000;
const IMAGE_TOKENS = 1_600;

/** Estimates the tokens of a file, the same for every model. Contexts are sized by it. */
export const estimateFile = ({ mediaType, width = 0, height = 0, pages = 1 }: MediaFacts): number =>
  mediaType === 'application/pdf'
    ? pages * PAGE_TOKENS
    : Math.min(IMAGE_TOKENS, Math.ceil((width * height) / PIXELS_PER_TOKEN));
