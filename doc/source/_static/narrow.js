/* SPDX-License-Identifier: Apache-2.0 */

/* Gives each cell the name of its column, for narrow.css. */
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table.docutils")) {
    const names = [...table.querySelectorAll("thead tr:last-child th")];
    if (names.length < 3) continue;
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, column) => {
        cell.dataset.column = names[column]?.textContent.trim() ?? "";
      });
    }
  }
});
