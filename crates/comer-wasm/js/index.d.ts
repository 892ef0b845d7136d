/** A pen stroke: points from pen down to pen up, x to the right and y down, in any unit. */
export type Stroke = Array<[x: number, y: number, ...more: number[]]>;

export interface LoadOptions {
  /** Address of a model file. Default: the one of this package. */
  model?: string;
  /** Address of a language model for it; null for none. Default: the one of this package, for its own model. */
  languageModel?: string | null;
  /** Whether to recognise in a Web Worker. Default: where there are Web Workers. */
  worker?: boolean;
}

export interface RecognizeOptions {
  /** Number of formulas, 1 to 20. Default 1. */
  nbest?: number;
  /** Beam size of each direction, 1 to 50. Default 10. */
  beam?: number;
  /** Greedy search, the fastest. Default false. */
  greedy?: boolean;
  /** Whether to compute `strokes`, `regions`, `boxes` and the alternatives of tokens. Default false. */
  alignment?: boolean;
  /** Whether to add each formula as MathML. Default false. */
  mathml?: boolean;
  /** Whether to add the image that the network sees. Default false. */
  image?: boolean;
  /**
   * `one` reads all ink as one formula, `auto` several where there is clearly more than one, `all` also those closer together.
   * Default `one`.
   */
  formulas?: 'one' | 'auto' | 'all';
  /** Tokens that the formula must have: those that it starts with, and others by their positions, counted from 0. Of several formulas, the first. */
  constraints?: { prefix?: string[]; tokens?: Record<number, string> };
  /** Cancels the call. */
  signal?: AbortSignal;
}

export interface Token {
  text: string;
  /** The probability that the token is correct given the others, 0 to 1. */
  confidence: number;
}

export interface Formula {
  latex: string;
  /** `symbolConfidence`: with the braces and scripts that belong to the symbol; null for tokens without ink. */
  tokens: Array<Token & { symbolConfidence: number | null; alternatives: Token[] }>;
  /** The probability that the whole formula is correct, 0 to 1. */
  confidence: number;
  mathml: string | null;
}

/** One of several formulas of a page. */
export interface FoundFormula {
  latex: string;
  confidence: number;
  /** Left, top, right and bottom in pixels of the upright picture or in the units of the ink. */
  box: [number, number, number, number];
  /** The numbers of its strokes, counted from 0; null for a picture. */
  strokes: number[] | null;
}

export interface Warning {
  code: 'low_confidence' | 'unread_ink' | 'no_formula' | 'too_small' | 'truncated';
  message: string;
}

/** Connected ink, in pixels of the image that the network sees. */
export interface Region {
  left: number;
  top: number;
  width: number;
  height: number;
  /** Whether no token was read from it. */
  unread: boolean;
}

export interface Reading {
  /** What the formula may be, the best one first; of the first formula if there are several. */
  formulas: Formula[];
  /** For each token of the best formula its attention to each stroke; null without alignment or strokes. */
  strokes: number[][] | null;
  regions: Region[] | null;
  /** For pictures with alignment: left, top, right and bottom of each token in pixels of the picture; null without ink. */
  boxes: Array<[number, number, number, number] | null> | null;
  /** The image that the network sees, as a data URL, if it was asked for. */
  image: string | null;
  /** All formulas in reading order if there are several; else null. */
  found: FoundFormula[] | null;
  /** The LaTeX of several formulas as lines, aligned at their relation signs; else null. */
  aligned: string | null;
  /** What a person should check. */
  warnings: Warning[];
  milliseconds: number;
}

export class RecognitionError extends Error {
  /** `input`: the input or the options are at fault; `load`: code or model could not be loaded; `internal`: a crash. */
  kind: 'input' | 'load' | 'internal';
}

export class Recognizer {
  private constructor();
  /** Loads WebAssembly and model. */
  static load(options?: LoadOptions): Promise<Recognizer>;
  recognizeStrokes(strokes: Stroke[], options?: RecognizeOptions): Promise<Reading>;
  recognizeImage(image: ImageData, options?: RecognizeOptions): Promise<Reading>;
  /** A file: png, jpeg, bmp, webp, tiff, gif, InkML or JSON strokes. */
  recognizeFile(file: Blob | ArrayBuffer | Uint8Array, options?: RecognizeOptions): Promise<Reading>;
  /** LaTeX as a MathML element. */
  mathml(latex: string, options?: { signal?: AbortSignal }): Promise<string>;
  /** What made the model: data, recipe, licence, accuracy. */
  provenance(): Promise<Record<string, unknown>>;
  /** Ends the Web Worker. */
  terminate(): void;
}
