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
  /** Tokens that the formula must have: those that it starts with, and others by their positions, counted from 0. */
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
  tokens: Array<Token & { alternatives: Token[] }>;
  /** The probability that the whole formula is correct, 0 to 1. */
  confidence: number;
  mathml: string | null;
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
  /** The best one first. */
  formulas: Formula[];
  /** For each token of the best formula its attention to each stroke; null without alignment or strokes. */
  strokes: number[][] | null;
  regions: Region[] | null;
  /** For pictures with alignment: left, top, right and bottom of each token in pixels of the picture; null without ink. */
  boxes: Array<[number, number, number, number] | null> | null;
  /** The image that the network sees, as a data URL, if it was asked for. */
  image: string | null;
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
