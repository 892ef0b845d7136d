// MathML in English words, for screen readers.

const SIGNS = {
  '+': 'plus', '-': 'minus', '−': 'minus', '=': 'equals', '<': 'is less than', '>': 'is greater than', '≤': 'is at most', '≥': 'is at least',
  '≠': 'is not equal to', '≈': 'is approximately', '±': 'plus or minus', '×': 'times', '⋅': 'times', '·': 'times', '÷': 'divided by',
  '/': 'over', '∑': 'sum', '∏': 'product', '∫': 'integral', '∞': 'infinity', '→': 'goes to', '∈': 'in', '∉': 'not in', '⊂': 'is a subset of',
  '∪': 'union', '∩': 'intersection', '∀': 'for all', '∃': 'there exists', '∂': 'partial', '∇': 'nabla', '∠': 'angle', '⊥': 'perpendicular to',
  '(': 'open parenthesis', ')': 'close parenthesis', '[': 'open bracket', ']': 'close bracket', '{': 'open brace', '}': 'close brace',
  '|': 'bar', '!': 'factorial', ',': 'comma', '.': 'point', ':': 'colon', '…': 'dots', '⋯': 'dots', '′': 'prime', '″': 'double prime',
  'ℝ': 'the real numbers', 'ℕ': 'the natural numbers', 'ℤ': 'the integers', 'ℚ': 'the rational numbers', 'ℂ': 'the complex numbers',
  "'": 'prime', '%': 'percent', sin: 'sine', cos: 'cosine', tan: 'tangent', log: 'log', ln: 'natural log', lim: 'limit',
};

const GREEK = [...'αβγδεζηθικλμνξοπρςστυφχψω'];
const GREEK_NAMES = ('alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau upsilon phi chi psi omega').split(' ');
const ORDINALS = { 3: 'cube', 4: 'fourth' };

function letter(text) {
  const variant = { ϵ: 'ε', ϑ: 'θ', ϕ: 'φ', ϱ: 'ρ', ϖ: 'π' }[text] ?? text;
  const index = GREEK.indexOf(variant.toLowerCase());
  if (index >= 0) {
    return variant === variant.toLowerCase() ? GREEK_NAMES[index] : `capital ${GREEK_NAMES[index]}`;
  }
  return /^\p{Lu}$/u.test(text) ? `capital ${text}` : text;
}

const isSimple = (element) => !element.children.length || (element.children.length === 1 && isSimple(element.children[0]));
const isStacked = (element) => /^[∑∏∫∮⋃⋂]$/.test(element.textContent) || /^(lim|max|min|sup|inf)$/.test(element.textContent);

function scripts(base, below, above) {
  const words = [say(base)];
  if (isStacked(base)) {
    words.push(below && `${base.textContent === 'lim' ? 'as' : 'from'} ${say(below)}`, above && `to ${say(above)}`, 'of');
    return words.filter(Boolean).join(' ');
  }
  if (below) {
    words.push(`sub ${say(below)}${isSimple(below) ? '' : ' end sub'}`);
  }
  const power = above?.textContent;
  if (power === '2') {
    words.push('squared');
  } else if (power === '3') {
    words.push('cubed');
  } else if (above && /^[′″']+$/.test(power)) {
    words.push(say(above));
  } else if (above) {
    words.push(`to the power of ${say(above)}${isSimple(above) ? '' : ' end power'}`);
  }
  return words.join(' ');
}

/** The words of an element of MathML. */
export function say(element) {
  const parts = Array.from(element.children);
  switch (element.localName) {
    case 'mi': case 'mn': case 'mo': case 'mtext': {
      const text = element.textContent.trim();
      return SIGNS[text] ?? (text.length <= 2 ? letter(text) : text);
    }
    case 'mfrac': {
      const [top, bottom] = parts.map(say);
      return parts.every(isSimple) ? `${top} over ${bottom}` : `the fraction ${top} over ${bottom} end fraction`;
    }
    case 'msqrt': {
      const inside = parts.map(say).join(' ');
      return parts.every(isSimple) ? `square root of ${inside}` : `square root of ${inside} end root`;
    }
    case 'mroot': {
      const degree = parts[1].textContent.trim();
      return `${ORDINALS[degree] ?? `${say(parts[1])}-th`} root of ${say(parts[0])} end root`;
    }
    case 'msup': return scripts(parts[0], null, parts[1]);
    case 'msub': return scripts(parts[0], parts[1], null);
    case 'msubsup': return scripts(parts[0], parts[1], parts[2]);
    case 'mover':
      return isStacked(parts[0]) ? scripts(parts[0], null, parts[1]) : `${say(parts[0])} with ${accent(parts[1])} above`;
    case 'munder':
      return isStacked(parts[0]) ? scripts(parts[0], parts[1], null) : `${say(parts[0])} with ${accent(parts[1])} below`;
    case 'munderover': return scripts(parts[0], parts[1], parts[2]);
    case 'mtable': return `table: ${parts.map((row) => Array.from(row.children, say).join(', ')).join('; ')} end table`;
    case 'mspace': case 'mphantom': return '';
    default: return parts.length ? parts.map(say).filter(Boolean).join(' ') : element.textContent.trim();
  }
}

function accent(element) {
  const names = { '^': 'a hat', '‾': 'a bar', '¯': 'a bar', '→': 'an arrow', '˙': 'a dot', '¨': 'two dots', '~': 'a tilde', _: 'a bar' };
  return names[element.textContent.trim()] ?? say(element);
}
