import { type VersionOrder, compareDigits } from './order.ts'

/** CRAN, Bioconductor, Hackage and GHC: numbers parted by dots or dashes, compared as lists; the longer list is later. */
export const numbersOrder: VersionOrder<readonly string[]> = {
  read(text) {
    const version = text.trim()
    return /^\d+(?:[.-]\d+)*$/.test(version) ? version.split(/[.-]/) : null
  },
  compare(one, other) {
    for (let i = 0; i < Math.min(one.length, other.length); i++) {
      const difference = compareDigits(one[i] ?? '', other[i] ?? '')
      if (difference !== 0) return difference
    }
    return one.length - other.length
  },
}
