/** Counts up when the same records make other findings here. Where the same VEX rules out others, the database must be made again. */
export const FINDINGS_RULES = 5
