import { compareDigits, createOrder } from './order.ts'

/** CRAN, Bioconductor, Hackage and GHC: numbers parted by dots or dashes, compared as lists; the longer list is later. */
export const numbersOrder = createOrder<readonly string[]>({
  read(text) {
    return /^\d+(?:[.-]\d+)*$/.test(text) ? text.split(/[.-]/) : null
  },
  compare(one, other) {
    for (let i = 0; i < Math.min(one.length, other.length); i++) {
      const difference = compareDigits(one[i] ?? '', other[i] ?? '')
      if (difference !== 0) return difference
    }
    return one.length - other.length
  },
})
