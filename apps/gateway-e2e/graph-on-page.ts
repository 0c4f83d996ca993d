/** Code for the page that returns the edges that go through a node between their ends. */
export const FIND_TOUCHED = `[...document.querySelectorAll('.react-flow__edge')].flatMap((edge) => {
  const path = edge.querySelector('path.react-flow__edge-path');
  const [to, from] = edge.getAttribute('aria-label').split(': ')[0].split(' needs ');
  const place = path.getScreenCTM(), length = path.getTotalLength();
  const points = Array.from({ length: 101 }, (_, nth) =>
    path.getPointAtLength((length * nth) / 100).matrixTransform(place));
  const others = [...document.querySelectorAll('.react-flow__node')].filter((node) =>
    !['node-' + from, 'node-' + to].includes(node.id));
  const isIn = ({ left, right, top, bottom }) =>
    points.some(({ x, y }) => x > left && x < right && y > top && y < bottom);
  return others.some((node) => isIn(node.getBoundingClientRect())) ? [edge.getAttribute('aria-label')] : [];
})`;

/** Code for the page that counts the nodes that the box of the graph cuts. */
export const FIND_OUTSIDE = `(() => {
  const box = document.querySelector('.react-flow').getBoundingClientRect();
  return [...document.querySelectorAll('.react-flow__node')].filter((node) => {
    const { left, right, top, bottom } = node.getBoundingClientRect();
    return left < box.left || right > box.right || top < box.top || bottom > box.bottom;
  }).length;
})()`;

/** Code for the page that returns the zoom of the graph. */
export const READ_ZOOM = `new DOMMatrix(
  getComputedStyle(document.querySelector('.react-flow__viewport')).transform).a`;
